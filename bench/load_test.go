package bench

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
)

// loaded is a database that was filled, and an engine on it.
type loaded struct {
	config LoadConfig
	past   *past
	pool   *pgxpool.Pool
	engine *engine.Engine
}

func load(t *testing.T, c LoadConfig) *loaded {
	t.Helper()
	c.URL = pgtest.DirectURL(t)
	c, err := c.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Load(t.Context(), c, &out); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	l := &loaded{config: c, past: newPast(c, time.Now())}
	if l.pool, err = pgxpool.New(t.Context(), c.URL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.pool.Close)
	l.engine, err = engine.New(engine.Config{Pool: l.pool, Schema: c.Schema, Workflows: loadedWorkflows,
		Log: slog.New(slog.DiscardHandler), Retention: engine.RetentionConfig{Off: true}})
	if err == nil {
		err = l.engine.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.engine.Stop(context.Background()) })
	return l
}

func (l *loaded) count(t *testing.T, sql string) (n int) {
	t.Helper()
	if err := l.pool.QueryRow(t.Context(), schema.In(l.config.Schema, sql)).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// What the loader writes is what an engine would have written: chains verify,
// positions have no gap, answers are replayed, and instances go on.
func TestALoadedDatabaseIsOneThatAnEngineHasWritten(t *testing.T) {
	t.Parallel()
	l := load(t, LoadConfig{Commands: 25_003, Instances: 2_500, Tenants: 3, Due: 5_000})
	for what, n := range map[string][2]int{
		"commands":   {25_003, l.count(t, "SELECT count(*) FROM pawl.command WHERE status = 'succeeded'")},
		"instances":  {2_500, l.count(t, "SELECT count(*) FROM pawl.instance")},
		"attributes": {250, l.count(t, "SELECT count(*) FROM pawl.instance WHERE attributes ->> 'depot' = 'depot-042'")},
		"due":        {5_000, l.count(t, "SELECT count(*) FROM pawl.command WHERE expires_at < now()")},
		"soon due":   {0, l.count(t, "SELECT count(*) FROM pawl.command WHERE expires_at BETWEEN now() AND now() + interval '1 hour'")},
		"heads":      {25_003, l.count(t, "SELECT sum(head)::int FROM pawl.log")},
		"tenants":    {3, l.count(t, "SELECT count(*) FROM pawl.log")},
		"times":      {0, l.count(t, "SELECT count(*) FROM pawl.audit a JOIN pawl.audit b ON a.tenant = b.tenant AND a.position + 1 = b.position WHERE a.at > b.at")},
		"statistics": {1, l.count(t, "SELECT count(*) FROM pg_class WHERE oid = 'pawl.command'::regclass AND reltuples > 20000")},
	} {
		if n[0] != n[1] {
			t.Errorf("%s: %d, want %d", what, n[1], n[0])
		}
	}
	for _, name := range l.past.tenants {
		v, err := l.engine.Verify(t.Context(), name, uuid.Nil) // every chain, and the log from 1 to its head
		if err != nil || len(v.Broken) > 0 || v.Entries == 0 {
			t.Errorf("tenant %s: %+v, %v", name, v, err)
		}
	}
	// A command of each kind, the oldest that is not due and the newest.
	for _, i := range []int{l.past.instances - 1, l.past.instances - 2, l.past.instances - 4} {
		for n := range l.past.length(i) {
			c := l.past.command(i, n)
			r, err := l.engine.Submit(t.Context(), c)
			if err != nil || r.Err() != nil || !r.Replayed || !strings.Contains(string(r.Body), `"transition":"`+c.Transition+`"`) {
				t.Errorf("command %d of instance %d again: %s, %v, %v", n, i, r.Body, r.Err(), err)
			}
		}
		c := l.past.command(i, 1)
		c.Key = "new"
		r, err := l.engine.Submit(t.Context(), c)
		if err != nil || r.Err() != nil || r.Replayed || !strings.Contains(string(r.Body), fmt.Sprintf(`"version":%d,`, l.past.length(i)+1)) {
			t.Errorf("instance %d does not go on: %s, %v, %v", i, r.Body, r.Err(), err)
		}
		v, err := l.engine.Verify(t.Context(), c.Tenant, c.Instance)
		if err != nil || len(v.Broken) > 0 || v.Entries != int64(l.past.length(i))+1 {
			t.Errorf("instance %d: %+v, %v", i, v, err)
		}
	}
	// The answer of the oldest has expired.
	if r, err := l.engine.Submit(t.Context(), l.past.command(0, 0)); err == nil && r.Err() == nil {
		t.Errorf("what is due is replayed: %s", r.Body)
	}
}

// A load drops indexes and builds them again.
func TestALoadLeavesTheIndexesThatTheSchemaHas(t *testing.T) {
	t.Parallel()
	l := load(t, LoadConfig{Commands: 10, Tenants: 1})
	if _, err := schema.Migrate(t.Context(), l.pool, schema.Default); err != nil {
		t.Fatal(err)
	}
	indexes := func(name string) string {
		t.Helper()
		var list string
		if err := l.pool.QueryRow(t.Context(), `SELECT string_agg(replace(indexdef, $1 || '.', ''), E'\n' ORDER BY indexname) FROM pg_indexes
			WHERE schemaname = $1`, name).Scan(&list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	if got, want := indexes(l.config.Schema), indexes(schema.Default); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestALoadIntoASchemaThatExistsIsRefused(t *testing.T) {
	t.Parallel()
	url := pgtest.DirectURL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if _, err := conn.Exec(t.Context(), "CREATE SCHEMA pawl_loaded; CREATE TABLE pawl_loaded.precious ()"); err != nil {
		t.Fatal(err)
	}
	if err := Load(t.Context(), LoadConfig{URL: url, Commands: 10}, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("got %v", err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT FROM pawl_loaded.precious"); err != nil {
		t.Error(err)
	}
}

func TestBadLoadConfigsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []LoadConfig{
		{},
		{URL: "postgres://", Commands: -1},
		{URL: "postgres://", Commands: 10, Instances: 11},
		{URL: "postgres://", Commands: 10, Due: 11},
		{URL: "postgres://", Tenants: -1},
		{URL: "postgres://", Schema: "No"},
	} {
		if err := Load(t.Context(), c, &strings.Builder{}); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

// Whoever asks again for a command of a past must ask for what was loaded.
func TestAPastIsAFunctionOfItsNumbers(t *testing.T) {
	t.Parallel()
	c, err := LoadConfig{URL: "x", Commands: 1037, Instances: 100, Tenants: 3, Due: 400}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	p := newPast(c, now)
	p.cohort = 7
	keys := map[transitions.Ref]bool{}
	for i := range p.instances {
		for n := range p.length(i) {
			c := p.command(i, n)
			ref := transitions.Ref{Tenant: c.Tenant, Scope: c.Scope + c.Instance.String(), Key: c.Key}
			if keys[ref] {
				t.Errorf("command %d of instance %d has the key of another", n, i)
			}
			keys[ref] = true
		}
	}
	if len(keys) != p.commands {
		t.Errorf("%d commands, want %d", len(keys), p.commands)
	}
	due := 0
	for n := range p.commands {
		switch at := p.at(n); {
		case n > 0 && at.Before(p.at(n-1)):
			t.Fatalf("command %d is before the one before", n)
		case at.After(now):
			t.Fatalf("command %d is yet to come", n)
		case !at.Add(replayFor).After(now):
			due++
		}
	}
	if due != p.due {
		t.Errorf("%d are due, want %d", due, p.due)
	}
}
