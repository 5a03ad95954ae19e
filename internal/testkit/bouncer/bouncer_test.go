package bouncer

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/internal/testkit/await"
)

// start starts a server and a PgBouncer.
func start(t *testing.T) (*localpg.Server, *Bouncer) {
	t.Helper()
	if !Installed() {
		t.Skip(ErrNotInstalled)
	}
	s, err := localpg.Start(t.Context(), localpg.Options{Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	b, err := Start(t.Context(), s.URL(), 2)
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

func TestBouncerReachesEveryDatabase(t *testing.T) {
	t.Parallel()
	s, b := start(t)
	config, err := pgx.ParseConfig(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	keywords := fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s",
		config.Host, config.Port, config.User, config.Password, config.Database)
	for server, database := range map[string]string{s.URL(): "pawl", s.URLFor("postgres"): "postgres", keywords: "pawl"} {
		through := b.Through(server)
		conn, err := pgx.Connect(t.Context(), through)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT current_database()::text").Scan(&got); err != nil || got != database {
			t.Errorf("%s leads to %s, %v", through, got, err)
		}
		config := conn.Config()
		if config.DefaultQueryExecMode != pgx.QueryExecModeExec || fmt.Sprintf("127.0.0.1:%d", config.Port) != b.address {
			t.Errorf("%s: port %d, mode %v", through, config.Port, config.DefaultQueryExecMode)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := pgx.Connect(t.Context(), strings.Replace(b.Through(s.URL()), config.Password, "guess", 1)); err == nil {
		t.Error("it accepts a wrong password")
	}
	if _, crashed := b.Crashed(); crashed {
		t.Error("it answers and reports a crash")
	}
	for range 2 { // Stop may be called twice
		if err := b.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pgx.Connect(t.Context(), b.Through(s.URL())); err == nil {
		t.Error("it answers after Stop")
	}
	if _, err := os.Stat(b.home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Stop its folder: %v, want it removed", err)
	}
}

func TestBouncerReportsCrash(t *testing.T) {
	t.Parallel()
	_, b := start(t)
	var pid int
	await.Eventually(t, "PgBouncer writes its pidfile and log", func() bool {
		text, _ := os.ReadFile(b.path("pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		log, _ := os.ReadFile(b.path("bouncer.log"))
		return pid > 0 && strings.Contains(string(log), "listening on")
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-b.ended
	if said, crashed := b.Crashed(); !crashed || !strings.Contains(said, "listening on") {
		t.Errorf("crashed: %v, it said %q", crashed, said)
	}
	if err := b.Stop(); err != nil {
		t.Error(err)
	}
}
