package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// node is another node on the stage's database, in a process of its own.
type node struct {
	url  string
	pid  int
	kill func() // ends it with SIGKILL; may be called twice
}

// startNode runs this program's command serve, with a lease, and returns when it
// serves.
func (s *story) startNode(ctx context.Context, lease string) (*node, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	args := []string{"serve", "--address", "127.0.0.1:0", "--schema", s.stage.schema, "--payments", s.bank.URL(), "--lease", lease}
	s.sent("%s", strings.Join(append([]string{"pawl"}, args...), " "))
	c := exec.CommandContext(ctx, self, args...)
	c.Env = append(os.Environ(), "DATABASE_URL="+s.stage.url)
	log, err := c.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("start a second node: %w", err)
	}
	n := &node{pid: c.Process.Pid}
	n.kill = sync.OnceFunc(func() {
		_ = c.Process.Kill() // it may be gone already
		_, _ = io.Copy(io.Discard, log)
		_ = c.Wait() // says that it was killed
	})
	var said []string
	for lines := bufio.NewScanner(log); lines.Scan(); {
		said = append(said, lines.Text())
		if _, rest, ok := strings.Cut(lines.Text(), "msg=serving url="); ok {
			n.url = strings.Fields(rest)[0]
			s.received("serving at %s, process %d", n.url, n.pid)
			return n, nil
		}
	}
	n.kill()
	return nil, errors.New("the second node does not serve: " + strings.Join(said, "; "))
}
