package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestABouncerLeadsToEveryDatabaseOfItsServerAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t, Options{Ephemeral: true})
	b, err := StartBouncer(t.Context(), s.URL(), 2)
	if errors.Is(err, ErrNoBouncer) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	keywords := fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s",
		config.Host, config.Port, config.User, config.Password, config.Database)
	for server, database := range map[string]string{s.URL(): "pawl", s.URLFor("postgres"): "postgres", keywords: "pawl"} {
		through := b.Through(server)
		if got := ask(t, through, "SELECT current_database()::text"); got != database {
			t.Errorf("%s leads to %s", through, got)
		}
		config, err := pgx.ParseConfig(through)
		if err != nil || config.DefaultQueryExecMode != pgx.QueryExecModeExec || int(config.Port) != b.port {
			t.Errorf("%s: port %d, mode %v, %v", through, config.Port, config.DefaultQueryExecMode, err)
		}
	}
	if _, err := query(t.Context(), strings.Replace(b.Through(s.URL()), s.password, "guess", 1), "SELECT 1"); err == nil {
		t.Error("it lets in who does not know the password")
	}
	if _, crashed := b.Crashed(); crashed {
		t.Error("it answers, and is said to have crashed")
	}
	for range 2 { // Stop may be called twice
		if err := b.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if !b.child.ended() {
		t.Error("after Stop it runs")
	}
	if _, err := os.Stat(b.home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Stop its folder: %v, want it gone", err)
	}
}

func TestACrashOfABouncerIsTold(t *testing.T) {
	t.Parallel()
	s := startServer(t, Options{Ephemeral: true})
	b, err := StartBouncer(t.Context(), s.URL(), 2)
	if errors.Is(err, ErrNoBouncer) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	if err := poll(ctx, "PgBouncer to say that it listens", func() (bool, error) { // it listens before it says so
		return strings.Contains(tail(b.path("bouncer.log")), "listening on"), nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.child.process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-b.child.waited
	if said, crashed := b.Crashed(); !crashed || !strings.Contains(said, "listening on") {
		t.Errorf("crashed: %v, it said %q", crashed, said)
	}
	if err := b.Stop(); err != nil {
		t.Error(err)
	}
}
