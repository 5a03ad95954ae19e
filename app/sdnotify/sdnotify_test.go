package sdnotify_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/sdnotify"
	"github.com/pawlhq/pawl/app/sdnotify/sdnotifytest"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/testlog"
)

func wantMessages(t *testing.T, systemd *sdnotifytest.Socket, want ...string) {
	t.Helper()
	for _, w := range want {
		require.Equal(t, w, systemd.Hear(t), "said")
	}
}

func TestSystemdHearsHowAServiceStands(t *testing.T) {
	for kind, name := range map[string]string{
		"a path":                 filepath.Join(t.TempDir(), "notify"),
		"the abstract namespace": "@pawl-test-" + strconv.Itoa(os.Getpid()),
	} {
		systemd := sdnotifytest.Listen(t, name)
		t.Setenv("NOTIFY_SOCKET", name)
		t.Setenv("WATCHDOG_USEC", "30000")
		t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
		n := sdnotify.FromEnvironment(slog.Default())
		for _, left := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
			_, is := os.LookupEnv(left)
			assert.Falsef(t, is, "%s: children would inherit %s", kind, left)
		}
		n.Ready("two\nlines")
		wantMessages(t, systemd, "READY=1\nSTATUS=two lines", "WATCHDOG=1", "WATCHDOG=1")
		n.Close()
		n.Close()
		n.Stopping()
		for got := ""; !strings.HasPrefix(got, "STOPPING=1\n"); { // what was said before Close is still there
			got = systemd.Hear(t)
			require.Falsef(t, got != "WATCHDOG=1" && !strings.HasPrefix(got, "STOPPING=1\n"), "%s: %q is said", kind, got)
		}
	}
}

func TestNotifier_ReceiverDoesNotRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	sdnotifytest.Listen(t, name)
	t.Setenv("NOTIFY_SOCKET", name)
	t.Setenv("WATCHDOG_USEC", "300")
	t.Setenv("WATCHDOG_PID", "")
	log := &testlog.Log{}
	n := sdnotify.FromEnvironment(slog.New(log))
	n.Ready("serving")
	await.Eventually(t, "a full queue is logged", func() bool { return log.Count("timeout") > 0 })
	n.Close()
}

func TestWatchdog_ProcessID(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	systemd := sdnotifytest.Listen(t, name)
	for _, unwanted := range [][2]string{{"", ""}, {"1000", "1"}, {"0", ""}, {"-1", ""}, {"soon", ""}} {
		t.Setenv("NOTIFY_SOCKET", name)
		t.Setenv("WATCHDOG_USEC", unwanted[0])
		t.Setenv("WATCHDOG_PID", unwanted[1])
		n := sdnotify.FromEnvironment(slog.Default())
		n.Ready("up")
		await.Pass("signs of life are not given", 20*time.Millisecond)
		n.Stopping()
		n.Close()
		wantMessages(t, systemd, "READY=1\nSTATUS=up", "STOPPING=1\nSTATUS=stopping")
	}
}

func TestNotify_NoListener(t *testing.T) {
	var log testlog.Log
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "1000")
	n := sdnotify.FromEnvironment(slog.New(&log))
	n.Ready("up")
	n.Stopping()
	n.Close()
	lines := log.List()
	assert.Empty(t, lines)
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	n = sdnotify.FromEnvironment(slog.New(&log))
	n.Ready("up")
	n.Close()
	assert.Equalf(t, 1, log.Count("cannot notify systemd"), "%q", log.List())
}
