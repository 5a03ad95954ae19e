package cli

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlhq/pawl/app/sdnotify/sdnotifytest"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// systemd starts what is after the service when it is ready, and does not kill it while it lives.
func TestServeTellsSystemdHowItStands(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	systemd := sdnotifytest.Listen(t, name)
	t.Setenv("NOTIFY_SOCKET", name)
	t.Setenv("WATCHDOG_USEC", "150000")
	t.Setenv("WATCHDOG_PID", "")
	root := CommandLine(order.Workflow(provider.New()))
	root.SetArgs([]string{"serve", "--address", "127.0.0.1:0", "--database", pgtest.URL(t)})
	root.SetErr(t.Output())
	code := make(chan int, 1)
	go func() { code <- Execute(root) }()
	url, is := strings.CutPrefix(systemd.Hear(t), "READY=1\nSTATUS=serving ")
	if !is {
		t.Fatalf("it says first %q", url)
	}
	r, err := http.Get(url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Errorf("when it says that it is ready it answers %s", r.Status)
	}
	if got := systemd.Hear(t); got != "WATCHDOG=1" {
		t.Errorf("it says %q", got)
	}
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for got := "WATCHDOG=1"; got == "WATCHDOG=1"; {
		if got = systemd.Hear(t); got != "WATCHDOG=1" && got != "STOPPING=1\nSTATUS=stopping" {
			t.Errorf("it says %q", got)
		}
	}
	if c := await.Receive(t, "serve ends", code); c != 0 {
		t.Errorf("exit %d", c)
	}
}
