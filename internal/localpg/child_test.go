package localpg

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestAChildThatIgnoresTheFirstSignalIsEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := startChild(exec.Command("sh", "-c", `cd "$1"; trap '' USR1; : >ignores
		while ! [ -e handle ]; do sleep 0.05; done
		trap 'exit 0' USR1; while :; do sleep 0.05; done`, "sh", dir), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.process.Kill(); <-c.waited })
	err = poll(t.Context(), "the program to ignore the signal", func() (bool, error) {
		_, err := os.Stat(filepath.Join(dir, "ignores"))
		return err == nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- c.end(t.Context(), syscall.SIGUSR1) }()
	select {
	case err := <-ended:
		t.Fatalf("it was to ignore the signal: %v", err)
	case <-time.After(resend / 2): // the first signal is lost by now
	}
	if err := os.WriteFile(filepath.Join(dir, "handle"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
