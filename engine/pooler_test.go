package engine_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/testlog"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// through is a migrated database behind PgBouncer, with the user's ledger.
func through(t *testing.T, mode pgx.QueryExecMode) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(pgtest.BouncerURL(t))
	require.NoError(t, err)
	config.ConnConfig.DefaultQueryExecMode = mode
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	direct := pgtest.DirectTo(t, pool)
	migrate(t, direct, schema.Default)
	exec(t, direct, ledgerSQL)
	return pool
}

// A session of a pooler is shared. After each use by the engine the next client finds it unchanged.
func TestPooler_NoSessionState(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			pool := through(t, mode)
			var log bytes.Buffer
			e := newEngine(t, pool, func(c *engine.Config) {
				c.Listen, c.Log = "", slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
				c.Workflows = append(c.Workflows, parcels(func(context.Context, *workflow.Attempt) (track, error) { return track{Number: "1"}, nil }))
			})
			submit(t, e, applied("L-1", 100))
			submit(t, e, on("pay", "L-1", "pay", 1, ""))
			submit(t, e, on("book", "L-1", "book", 1, ""))
			r := submit(t, e, on("pay", "L-1", "pay", 1, ""))
			assert.Truef(t, r.Replayed, "got %+v", r)
			tx := begin(t, pool)
			submitTx(t, e, tx, on("pay", "L-1", "mine", 1, ""))
			commitTx(t, tx)
			packed := submit(t, e, transitions.Command{Workflow: "parcel", Transition: "pack", Key: "1"})
			sent := submit(t, e, transitions.Command{Workflow: "parcel", Transition: "send", Key: "2", Instance: packed.Instance})
			if r, err := e.Await(t.Context(), transitions.Ref{Scope: sent.Record.Scope, Key: "2"}); err != nil || r.Err() != nil {
				t.Fatalf("%+v, %v", r, err)
			}
			page, err := e.Read().Instances(t.Context(), inspect.Filter{Workflow: "loan", Attributes: map[string]string{"customer": "c-1"}})
			assert.Truef(t, err == nil && len(page.Instances) == 1, "found %+v, %v", page, err)
			sound(t, e, pool)

			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			e.Stop(ctx)
			assert.Equal(t, 1, strings.Count(log.String(), "by polling"), "that nodes hear of each other by polling was said times")
			sessions := query[int](t, pgtest.DirectTo(t, pool), `SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`)
			require.Truef(t, sessions >= 2, "the pooler has %d sessions; the test proves little", sessions)
			config := pool.Config()
			config.MaxConns = int32(sessions)
			lookers, err := pgxpool.NewWithConfig(t.Context(), config)
			require.NoError(t, err)
			t.Cleanup(lookers.Close)
			var seen []uint32
			for range sessions { // each transaction holds the session that it looks at
				look := begin(t, lookers)
				var pid uint32
				var left string
				require.NoError(t, look.QueryRow(t.Context(), `SELECT pg_backend_pid(), concat_ws(', ',
					(SELECT string_agg(name || ' = ' || setting, ', ') FROM pg_settings WHERE source = 'session'
						AND name NOT IN ('application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings')),
					(SELECT string_agg('prepared ' || statement, ', ') FROM pg_prepared_statements WHERE name <> ''),
					(SELECT string_agg('listens to ' || c, ', ') FROM pg_listening_channels() AS c),
					(SELECT string_agg('locks ' || locktype, ', ') FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'))`).
					Scan(&pid, &left))
				assert.Equal(t, "", left, "left in a session")
				assert.Falsef(t, slices.Contains(seen, pid), "session %d was looked at twice", pid)
				seen = append(seen, pid)
			}
		})
	}
}

// A connection through a pooler without the pooler mode is refused with the remedy, instead of losing statements.
func TestAPoolerThatThePoolIsNotMadeForIsRefused(t *testing.T) {
	t.Parallel()
	pool := through(t, pgx.QueryExecModeCacheStatement)
	const advice = "default_query_exec_mode=exec"
	e, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	assert.ErrorContains(t, e.Start(t.Context()), advice)
	e.Stop(t.Context())
	assert.ErrorContains(t, errOf(schema.Migrate(t.Context(), pool, schema.Default)), advice)
}

// What is sent past the pooler is heard past it.
func TestANodeBehindAPoolerHearsPastIt(t *testing.T) {
	t.Parallel()
	pool := through(t, pgx.QueryExecModeExec)
	newEngine(t, pool)
	eventually(t, "it listens", func() bool {
		return query[int](t, pool, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND application_name = 'pawl listener' AND query LIKE 'LISTEN%'`) == 1
	})
	assert.ErrorContains(t, errOf(engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}, Listen: "postgres://%"})),
		"Config.Listen")
}

// LISTEN through a pooler would receive nothing, and leave one of its sessions listening.
func TestListenThroughPoolerIsRefused(t *testing.T) {
	t.Parallel()
	pool := through(t, pgx.QueryExecModeExec)
	e, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}, Listen: pool.Config().ConnString(),
		Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	assert.ErrorContains(t, e.Start(t.Context()), "must lead past the pooler")
	e.Stop(t.Context())
}

// The database has no schema pawl, so a statement that is not qualified with the configured name fails.
func TestSchemaName_PauseAndResume(t *testing.T) {
	t.Parallel()
	const name = "shop_2"
	pool := pgtest.EmptyPool(t)
	require.NoError(t, errOf(schema.Migrate(t.Context(), pool, name)))
	exec(t, pool, ledgerSQL)
	var log testlog.Log
	e := newEngine(t, pool, func(c *engine.Config) { c.Schema, c.Log = name, slog.New(&log) })
	made := submit(t, e, applied("L-1", 10))
	for _, step := range []struct {
		action transitions.Action
		paused int
	}{{transitions.Pause, 1}, {transitions.Resume, 0}} {
		o := transitions.Operation{Action: step.action, Reason: "audit"}
		c := transitions.Command{Instance: made.Instance, Key: string(step.action), Actor: "olga"}
		operate(t, e, c, o)
		list, _, err := e.Admin().PausedInstances(t.Context(), inspect.PausedFilter{})
		require.Truef(t, err == nil && len(list) == step.paused, "after %s: %+v, %v", step.action, list, err)
		for _, p := range list {
			assert.Truef(t, p.Actor == "olga" && p.Reason == "audit" && !p.At.IsZero(), "the pause is listed as %+v", p)
		}
	}
	r := submit(t, e, on("pay", "L-1", "pay", 10, ""))
	assert.Equalf(t, made.Version+3, r.Version, "after the resumption: %+v", r)
	intact(t, e)
	assert.Equalf(t, 0, log.Count("does not exist"), "logged %q", log.List())
}
