package bench

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// loaded is a database that was filled, and an engine on it.
type loaded struct {
	url, schema string
	past        *past
	pool        *pgxpool.Pool
	engine      *engine.Engine
}

func load(t *testing.T, commands int) *loaded {
	t.Helper()
	c := smallConfig(t)
	c.Large = commands
	db, err := openDatabase(t.Context(), c.URL, fullSchema)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, db.close(context.Background()))
	})
	e := &env{Config: c, db: db, past: newPast(commands, 1, time.Now())}
	require.NoError(t, e.fill(t.Context(), e.past))
	// Not the small tables: whether one is read as a whole is nothing to know.
	require.NoError(t, db.exec(t.Context(), "VACUUM (ANALYZE) {pawl}.instance, {pawl}.command, {pawl}.audit, {pawl}.outbox, {pawl}.log"))
	l := &loaded{url: c.URL, schema: fullSchema, past: e.past}
	l.pool, err = pgxpool.New(t.Context(), c.URL)
	require.NoError(t, err)
	t.Cleanup(l.pool.Close)
	l.engine, err = engine.New(engine.Config{Pool: l.pool, Schema: l.schema, Workflows: []workflow.Source{definition},
		Log: slog.New(slog.DiscardHandler), Retention: engine.RetentionConfig{Off: true}})
	if err == nil {
		err = l.engine.Start(t.Context())
	}
	require.NoError(t, err)
	t.Cleanup(func() { l.engine.Stop(context.Background()) })
	return l
}

// The loaded rows are those of the past, by its clock: chains verify, answers are replayed or have expired, and instances continue.
func TestLoad_EqualsEngine(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	const commands = 20_000
	l := load(t, commands)
	due, entries := 0, int64(0)
	err := l.pool.QueryRow(t.Context(), schema.In(l.schema, "SELECT expired FROM {pawl}.purge(100000)")).Scan(&due)
	want := l.past.due * l.past.cohort * commandsEach
	assert.Truef(t, err == nil && due == want, "%d are due, want %d (%v)", due, want, err)
	for _, name := range []string{tenant, "tenant-000", "tenant-001", "tenant-002"} {
		v, err := l.engine.Admin().Verify(t.Context(), name, uuid.Nil) // every chain, and the log from 1 to its head
		assert.Truef(t, err == nil && len(v.Broken) == 0 && v.Entries != 0, "tenant %s: %+v, %v", name, v, err)
		entries += v.Entries
	}
	assert.Equal(t, int64(commands), entries, "transitions")
	// The oldest that is not due, and the newest.
	for _, i := range []int{l.past.due * l.past.cohort, l.past.instances - 1} {
		for n := range commandsEach {
			c := l.past.command(i, n)
			r, err := l.engine.Submit(t.Context(), c)
			if err = check(r, err, true); err != nil || !strings.Contains(string(r.Body), `"transition":"`+c.Transition+`"`) {
				t.Errorf("command %d of instance %d again: %s, %v", n, i, r.Body, err)
			}
		}
		c := l.past.command(i, 1)
		c.Key = "new"
		r, err := l.engine.Submit(t.Context(), c)
		if err = check(r, err, false); err != nil || !strings.Contains(string(r.Body), fmt.Sprintf(`"version":%d,`, commandsEach+1)) {
			t.Errorf("instance %d does not go on: %s, %v", i, r.Body, err)
		}
	}
	r, err := l.engine.Submit(t.Context(), l.past.command(0, 0))
	assert.Falsef(t, err == nil && r.Err() == nil, "what is due is replayed: %s", r.Body)
}

// A repeated command of a past must equal the loaded one.
func TestAPastIsAFunctionOfItsNumbers(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := newPast(4000, 2, now)
	keys := map[transitions.Ref]bool{}
	for n := range p.cohorts() {
		for _, c := range p.cohortOf(n) {
			keys[transitions.Ref{Tenant: c.Tenant, Scope: c.Instance.String(), Key: c.Key}] = true
		}
		at := p.at(n)
		require.Truef(t, (n <= 0 || !at.Before(p.at(n-1))) && !at.After(now), "cohort %d is before the one before, or yet to come", n)
		due := !at.Add(replayFor).After(now)
		assert.Equalf(t, (n < p.due), due, "cohort %d is due", n)
	}
	assert.Truef(t, len(keys) == 4000 && p.due == 2*p.cohorts()/dueShare,
		"%d commands with keys of their own, and %d of %d cohorts are due", len(keys), p.due, p.cohorts())
}
