package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the times in /proc.
const tick = 10 * time.Millisecond

// processorTime is, in microseconds, what this program and the server's processes have used so far, those
// that have ended among them; -1 where that cannot be seen: on another system than
// Linux, or of a server on another machine.
func (d *database) processorTime(ctx context.Context) (int64, error) {
	var backend int
	if err := d.admin.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return 0, err
	}
	own, ok := statOf(strconv.Itoa(backend))
	if !ok || !strings.HasPrefix(own.name, "postgres") {
		return -1, nil
	}
	program, ok := statOf("self")
	if !ok {
		return -1, nil
	}
	server, ok := statOf(own.parent)
	if !ok {
		return -1, nil
	}
	sum := program.used + server.used + server.ended
	list, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range list {
		if child, ok := statOf(filepath.Base(path)); ok && child.parent == own.parent {
			sum += child.used
		}
	}
	return sum.Microseconds(), nil
}

// stat is what is known of a process: its own time, and that of its children that have
// ended.
type stat struct {
	name, parent string
	used, ended  time.Duration
}

// statOf reads /proc/PID/stat. It returns false if the process does not exist.
func statOf(pid string) (s stat, ok bool) {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return s, false
	}
	before, after, found := strings.Cut(string(raw), "(")
	end := strings.LastIndexByte(after, ')')
	if !found || before == "" || end < 0 {
		return s, false
	}
	s.name = after[:end]
	var state string
	var skip [9]int64
	var user, system, childUser, childSystem int64
	_, err = fmt.Sscan(after[end+1:], &state, &s.parent, &skip[0], &skip[1], &skip[2], &skip[3], &skip[4], &skip[5], &skip[6],
		&skip[7], &skip[8], &user, &system, &childUser, &childSystem)
	s.used, s.ended = time.Duration(user+system)*tick, time.Duration(childUser+childSystem)*tick
	return s, err == nil
}
