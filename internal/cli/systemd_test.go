package cli

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/await"
	"github.com/pawlhq/pawl/internal/pgtest"
)

// systemd starts what is after the service when it is ready, and does not kill it while it lives.
func TestServeTellsSystemdHowItStands(t *testing.T) {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", conn.LocalAddr().String())
	t.Setenv("WATCHDOG_USEC", "150000")
	t.Setenv("WATCHDOG_PID", "")
	hear := func() string {
		t.Helper()
		if err := conn.SetReadDeadline(time.Now().Add(await.Patience)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4096)
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	root := CommandLine(order.Workflow(provider.New()))
	root.SetArgs([]string{"serve", "--address", "127.0.0.1:0", "--database", pgtest.URL(t)})
	root.SetErr(t.Output())
	code := make(chan int, 1)
	go func() { code <- Execute(root) }()
	url, is := strings.CutPrefix(hear(), "READY=1\nSTATUS=serving ")
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
	if got := hear(); got != "WATCHDOG=1" {
		t.Errorf("it says %q", got)
	}
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for got := "WATCHDOG=1"; got == "WATCHDOG=1"; {
		if got = hear(); got != "WATCHDOG=1" && got != "STOPPING=1\nSTATUS=stopping" {
			t.Errorf("it says %q", got)
		}
	}
	if c := await.Receive(t, "serve ends", code); c != 0 {
		t.Errorf("exit %d", c)
	}
}
