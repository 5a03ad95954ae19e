package cli

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	require.Truef(t, is, "it says first %q", url)
	r, err := http.Get(url + "/readyz")
	require.NoError(t, err)
	r.Body.Close()
	assert.Equalf(t, http.StatusOK, r.StatusCode, "when it says that it is ready it answers %s", r.Status)
	assert.Equal(t, "WATCHDOG=1", systemd.Hear(t), "it says")
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGTERM))
	for got := "WATCHDOG=1"; got == "WATCHDOG=1"; {
		got = systemd.Hear(t)
		assert.Falsef(t, got != "WATCHDOG=1" && got != "STOPPING=1\nSTATUS=stopping", "it says %q", got)
	}
	assert.Equal(t, 0, await.Receive(t, "serve ends", code), "exit")
}
