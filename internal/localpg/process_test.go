package localpg

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRunningInReadsLockFile(t *testing.T) {
	t.Parallel()
	data := openFolder(t)
	server := exec.Command("sh", "-c", "read -r _", "sh", "-D", data, "-c", "port=5433") // it looks like one
	stdin, err := server.StdinPipe()
	if err == nil {
		err = server.Start()
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = stdin.Close(); _ = server.Wait() })
	pid := server.Process.Pid
	for _, c := range []struct {
		name, content string
		want          postmaster
		running       bool
	}{
		{"complete", "PID\n/d\n1700000000\n5433\n\n127.0.0.1\n  123 456\nready   \n", postmaster{data, pid, 5433, true}, true},
		{"starting", "PID\n/d\n1700000000\n5433\n\n127.0.0.1\n  123 456\nstarting\n", postmaster{data, pid, 5433, false}, true},
		{"no state yet", "PID\n/d\n1700000000\n5433\n\n", postmaster{data, pid, 5433, false}, true},
		{"process number only", "PID", postmaster{data, pid, 0, false}, true},
		{"single-user mode", "-PID\n/d\n", postmaster{}, false},
		{"empty", "", postmaster{}, false},
	} {
		content := strings.Replace(c.content, "PID", strconv.Itoa(pid), 1)
		require.NoError(t, os.WriteFile(pidFile(data), []byte(content), 0o600))
		if err := poll(t.Context(), c.name, func() (bool, error) { // a process has no command line at first
			_, running := runningIn(data)
			return running == c.running, nil
		}); err != nil {
			t.Fatal(err)
		}
		got, running := runningIn(data)
		assert.Falsef(t, running && got != c.want, "%s: got %+v, want %+v", c.name, got, c.want)
	}
}
