package sdnotify_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/app/sdnotify"
	"github.com/pawlhq/pawl/app/sdnotify/sdnotifytest"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/testlog"
)

func wantMessages(t *testing.T, systemd *sdnotifytest.Socket, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := systemd.Hear(t); got != w {
			t.Fatalf("%q is said, not %q", got, w)
		}
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
			if _, is := os.LookupEnv(left); is {
				t.Errorf("%s: children would inherit %s", kind, left)
			}
		}
		n.Ready("two\nlines")
		wantMessages(t, systemd, "READY=1\nSTATUS=two lines", "WATCHDOG=1", "WATCHDOG=1")
		n.Close()
		n.Close()
		n.Stopping()
		for got := ""; !strings.HasPrefix(got, "STOPPING=1\n"); { // what was said before Close is still there
			if got = systemd.Hear(t); got != "WATCHDOG=1" && !strings.HasPrefix(got, "STOPPING=1\n") {
				t.Fatalf("%s: %q is said", kind, got)
			}
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

func TestSignsOfLifeAreThoseOfTheProcessThatIsAsked(t *testing.T) {
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

func TestNobodyHasToListen(t *testing.T) {
	var log testlog.Log
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "1000")
	n := sdnotify.FromEnvironment(slog.New(&log))
	n.Ready("up")
	n.Stopping()
	n.Close()
	if lines := log.List(); len(lines) > 0 {
		t.Errorf("%q", lines)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	n = sdnotify.FromEnvironment(slog.New(&log))
	n.Ready("up")
	n.Close()
	if log.Count("systemd cannot be told") != 1 {
		t.Errorf("%q", log.List())
	}
}
