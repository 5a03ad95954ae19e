package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// withHook are the loans with a transition "hook" that runs the user's SQL.
func withHook(run func(ctx context.Context, tx pgx.Tx, d loan, p payment) error) func(*engine.Config) {
	return func(c *engine.Config) {
		c.Pipeline.RetryWorkers, c.Pipeline.LockWait, c.Pipeline.Outage = 1, 20*time.Second, 20*time.Second
		c.Workflows = []workflow.Source{loans(1, engine.InTx(workflow.On("hook", workflow.From("open"), workflow.Stay, pay).Or("settled"), run))}
	}
}

// runs runs the text of the payment as SQL.
func runs(ctx context.Context, tx pgx.Tx, _ loan, p payment) error {
	for _, sql := range strings.Split(p.Do, ";;") {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// The SQLSTATE of the user's SQL may come from another server or from a limit of its own: it says nothing about our connection or our
// locks.
func TestAnErrorOfTheUsersSQLIsItsCommandsAlone(t *testing.T) {
	t.Parallel()
	raise := func(code string) string {
		return fmt.Sprintf("DO $$ BEGIN RAISE EXCEPTION 'elsewhere' USING ERRCODE = '%s'; END $$", code)
	}
	atCommit := func(sql string) string {
		return "CREATE TABLE put_off (n int);;CREATE FUNCTION pg_temp.later() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN " + sql +
			" RETURN NULL; END $f$;;CREATE CONSTRAINT TRIGGER later AFTER INSERT ON put_off DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE " +
			"FUNCTION pg_temp.later();;INSERT INTO put_off VALUES (1)"
	}
	pool := database(t)
	exec(t, pool, "CREATE TABLE busy (n int); INSERT INTO busy VALUES (1)")
	var ran atomic.Int64
	e := newEngine(t, pool, withHook(func(ctx context.Context, tx pgx.Tx, d loan, p payment) error {
		ran.Add(1)
		return runs(ctx, tx, d, p)
	}))
	hold := begin(t, pool)
	require.NoError(t, errOf(hold.Exec(t.Context(), "SELECT FROM busy FOR UPDATE")))
	for _, tt := range []struct {
		name, sql string
		want      workflow.Code
		runs      int64
	}{
		{"foreign connection", raise("08001"), workflow.Internal, 1},
		{"foreign connection lost", raise("08006"), workflow.Internal, 1},
		{"foreign shutdown", raise("57P01"), workflow.Internal, 1},
		{"foreign idle", raise("25P03"), workflow.Internal, 1},
		{"foreign transaction timeout", raise("25P04"), workflow.Internal, 1},
		{"foreign connections", raise("53300"), workflow.Internal, 1},
		{"contested elsewhere", raise("23505"), workflow.Internal, 1},
		{"statement timeout", "SET LOCAL statement_timeout = '20ms';;SELECT pg_sleep(60)", workflow.TimedOut, 1},
		{"lock", "SELECT FROM busy FOR UPDATE NOWAIT", workflow.Locked, 1},
		{"read only", "SET TRANSACTION READ ONLY;;INSERT INTO ledger VALUES ('x', 1)", workflow.Internal, 1},
		{"at commit", atCommit("RAISE EXCEPTION 'elsewhere' USING ERRCODE = '08001';"), workflow.Internal, 1},
		{"timeout at commit", atCommit("RAISE EXCEPTION 'slow' USING ERRCODE = '57014';"), workflow.TimedOut, 1},
		{"serialization", raise("40001"), workflow.Unavailable, 21},
		{"its connection ends", "SELECT pg_terminate_backend(pg_backend_pid())", workflow.Unavailable, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			submit(t, e, applied(tt.name, 100))
			before, connections := rowCounts(t, pool), e.Admin().Stats().Lost
			ran.Store(0)
			wantCode(t, errOf(e.Submit(t.Context(), on("hook", tt.name, "h", 1, tt.sql))), tt.want)
			assert.Equal(t, tt.runs, ran.Load(), "it ran times")
			n := e.Admin().Stats().Lost - connections
			assert.Falsef(t, n != 0 && tt.runs != 3, "%d connections were given up", n)
			wantMore(t, pool, before, nil)
			submit(t, e, on("hook", tt.name, "h", 1, "SELECT 1")) // the key is free
		})
	}
}

// Deferred work of the user's SQL runs in the commit, and may exceed its time or end its connection. The outcome of the commit is unknown
// then, so it is read by key, and the command runs again as often as with other SQL.
func TestInTx_DeferralsAreBounded(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `CREATE TABLE put_off (what text);
		CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE NEW.what; RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER later AFTER INSERT ON put_off DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION later()`)
	var ran atomic.Int64
	e := newEngine(t, pool, withHook(func(ctx context.Context, tx pgx.Tx, _ loan, p payment) error {
		ran.Add(1)
		_, err := tx.Exec(ctx, "INSERT INTO put_off VALUES ($1)", p.Do)
		return err
	}), func(c *engine.Config) { c.Pipeline.HookTimeout = 500 * time.Millisecond })
	for name, tt := range map[string]struct {
		sql  string
		most int64
	}{
		"slow": {"SELECT pg_sleep(60)", 3},
		"ends": {"SELECT pg_terminate_backend(pg_backend_pid())", 20}, // which may as well be the server's end
	} {
		t.Run(name, func(t *testing.T) {
			submit(t, e, applied(name, 100))
			before := rowCounts(t, pool)
			eventually(t, "it is given up in its commit, which a busy machine may not come to in time", func() bool {
				ran.Store(0)
				_, err := e.Submit(t.Context(), on("hook", name, "h", 1, tt.sql))
				n := ran.Load()
				assert.Truef(t, n <= tt.most, "it ran %d times", n)
				if code := workflow.CodeOf(err); code != workflow.TimedOut {
					wantCode(t, err, workflow.Unavailable)
				}
				return workflow.CodeOf(err) == workflow.Unavailable
			})
			wantMore(t, pool, before, nil)
		})
	}
}

// sessionSQL says what is not as a session begins.
const sessionSQL = `SELECT concat_ws(', ', coalesce(current_setting('app.tenant', true), ''), current_user, current_setting('role'),
	current_setting('synchronous_commit'),
	current_setting('default_transaction_read_only'), current_setting('search_path'), current_setting('TimeZone'),
		current_setting('lock_timeout'),
	(SELECT count(*) FROM pg_prepared_statements WHERE from_sql), (SELECT count(*) FROM pg_class WHERE relpersistence = 't' AND relkind = 'r'
		AND pg_table_is_visible(oid)),
	(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()), (SELECT count(*) FROM pg_listening_channels()),
	(SELECT count(*) FROM pg_cursors WHERE is_holdable))`

// Changes of the session by the user's SQL end with its command: the next command on the connection finds the session as it was.
func TestTheUsersSQLLeavesNothingInItsSession(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectPool(t) // behind a pooler sessions are nobody's; see InTx
	exec(t, pool, ledgerSQL)
	makeRole(t, pool)
	// Every command's row says with what settings it is committed.
	exec(t, pool, `CREATE TABLE public.seen (key text, setting text);
		CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO public.seen VALUES (NEW.key, current_setting('synchronous_commit') || ' ' || current_user); RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER see AFTER INSERT ON pawl.command DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION see()`)
	saw := make(chan string, 100)
	e := newEngine(t, pool, withHook(func(ctx context.Context, tx pgx.Tx, d loan, p payment) error {
		if p.Do != "" {
			return runs(ctx, tx, d, p)
		}
		var s string
		err := tx.QueryRow(ctx, sessionSQL).Scan(&s)
		saw <- s
		return err
	}))
	submit(t, e, applied("L-1", 1000))
	submit(t, e, on("hook", "L-1", "before", 1, ""))
	before := <-saw
	for _, do := range []string{"SET app.tenant = 'a'", "SELECT set_config('app.tenant', 'a', true)", "SET synchronous_commit = off",
		"SET LOCAL synchronous_commit = off",
		"SET ROLE pawl_nobody", "SET LOCAL ROLE pawl_nobody", "SET SESSION AUTHORIZATION pawl_nobody", "SET default_transaction_read_only = on",
		"SET search_path = pg_catalog", "SET TimeZone = 'Asia/Tokyo'", "SET lock_timeout = '3s'", "PREPARE theirs AS SELECT 1",
		"CREATE TEMP TABLE theirs (n int)", "SELECT pg_advisory_lock(7)", "LISTEN theirs", "DECLARE theirs CURSOR WITH HOLD FOR SELECT 1",
		"SELECT pg_advisory_lock(7);;PREPARE theirs AS SELECT 1;;SELECT 1/0"} {
		t.Run(do, func(t *testing.T) {
			if strings.HasSuffix(do, "pawl_nobody") {
				pgtest.NeedsOwner(t)
			}
			_, err := e.Submit(t.Context(), on("hook", "L-1", "does "+do, 1, do))
			assert.Equal(t, strings.HasSuffix(do, "1/0"), (err != nil), err)
			submit(t, e, on("hook", "L-1", "after "+do, 1, ""))
			// A command without SQL of its own goes the same way where it meets a lock.
			tx, aside := begin(t, pool), e.Admin().Stats().Aside
			require.NoError(t, errOf(tx.Exec(t.Context(), "SELECT FROM pawl.instance WHERE id = $1 FOR UPDATE", loanID("L-1"))))
			done := make(chan error, 1)
			go func() { _, err := e.Submit(t.Context(), on("pay", "L-1", "plain "+do, 1, "")); done <- err }()
			eventually(t, "the command is on the lane", func() bool { return e.Admin().Stats().Aside > aside })
			rollback(t, tx)
			require.NoError(t, <-done)
			assert.Equal(t, <-saw, before, "the next one finds\n \nwhere the first found")
			if n := query[int](t, pool,
				"SELECT count(*) FROM public.seen WHERE setting <> (SELECT setting FROM public.seen WHERE key = 'before')"); n != 0 {
				t.Errorf("%d commands were committed with other settings: %v", n,
					query[[]string](t, pool, "SELECT array_agg(key || ' ' || setting) FROM public.seen"))
				exec(t, pool, "DELETE FROM public.seen WHERE key <> 'before'")
			}
			assert.Equal(t, int64(0), e.Admin().Stats().Lost, "connections were given up")
		})
	}
}

// makeRole makes a role that may do nothing, for all databases of the server.
func makeRole(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := pool.Exec(t.Context(), `DO $$ BEGIN
			IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'pawl_nobody') THEN CREATE ROLE pawl_nobody; END IF; END $$`)
		if err == nil {
			return
		}
		require.False(t, time.Now().After(deadline), err)
	}
}

// However much of one tenant's SQL waits, a worker is left for another tenant's, and one for what has none.
func TestSlowSQLOfOneTenantHoldsUpNoOther(t *testing.T) {
	pool := database(t)
	begun, gate := make(chan struct{}, 100), make(chan struct{})
	slow := func(ctx context.Context, tx pgx.Tx, d loan, p payment) error {
		if p.Do == "wait" {
			begun <- struct{}{}
			select {
			case <-gate:
			case <-ctx.Done():
			}
		}
		return nil
	}
	e := newEngine(t, pool, func(c *engine.Config) {
		c.Pipeline.RetryWorkers, c.Pipeline.LockWait, c.Pipeline.HookTimeout = 4, await.Patience, await.Patience
		c.Workflows = []workflow.Source{loans(1, engine.InTx(workflow.On("slow", workflow.From("open"), workflow.Stay, pay).Or("settled"), slow))}
	})
	const many = 20
	for i := range many {
		submit(t, e, applied(fmt.Sprint("L-", i), 100))
	}
	others := func(c transitions.Command) transitions.Command { c.Tenant = "other"; return c }
	id := submit(t, e, others(applied("O-1", 100))).Instance
	submit(t, e, others(applied("O-2", 100)))

	answers := make(chan error, many)
	for i := range many {
		go func() {
			_, err := e.Submit(context.WithoutCancel(t.Context()), on("slow", fmt.Sprint("L-", i), "s", 1, "wait"))
			answers <- err
		}()
	}
	for range 2 { // as many as one tenant has at once
		await.Receive(t, "the slow SQL has begun", begun)
	}
	await.Eventually(t, "all others of it wait", func() bool { return e.Admin().Stats().Aside >= many })

	// With SQL of its own, and a plain one whose instance was held.
	submit(t, e, others(on("slow", "O-2", "s", 1, "")))
	tx := begin(t, pool)
	require.NoError(t, errOf(tx.Exec(t.Context(), "SELECT 1 FROM pawl.instance WHERE id = $1 FOR UPDATE", id)))
	aside := e.Admin().Stats().Aside
	paid := make(chan error, 1)
	go func() {
		_, err := e.Submit(context.WithoutCancel(t.Context()), others(on("pay", "O-1", "p", 1, "")))
		paid <- err
	}()
	await.Eventually(t, "it waits for the instance", func() bool { return e.Admin().Stats().Aside > aside })
	rollback(t, tx)
	assert.NoError(t, await.Receive(t, "the plain command", paid))
	n := len(begun)
	assert.Truef(t, n <= 0, "%d of one tenant's run at once, where 2 may", 2+n)
	close(gate)
	for range many {
		assert.NoError(t, await.Receive(t, "the slow SQL", answers))
	}
}

// oneTransition is what a transition with one event adds; with its own SQL, the
// ledger too.
var (
	oneTransition = map[string]int{"pawl.command": 1, "pawl.audit": 1, "pawl.outbox": 1, "head": 1}
	oneBooking    = map[string]int{"pawl.command": 1, "pawl.audit": 1, "pawl.outbox": 1, "head": 1, "ledger": 1}
)

func TestTheUsersSQLCommitsWithItsCommand(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	first := submit(t, e, on("book", "L-1", "b", 30, ""))
	wantMore(t, pool, before, oneBooking)
	assert.Truef(t, first.Position == 2 && first.Version == 2, "got %+v", first)
	for range 3 { // a replay does not run it again
		again := submit(t, e, on("book", "L-1", "b", 30, ""))
		assert.Truef(t, again.Replayed && bytes.Equal(again.Body, first.Body),
			"got %s, replayed %v, want %s", again.Body, again.Replayed, first.Body)
	}
	wantMore(t, pool, before, oneBooking)
}

func TestARefusalOfTheUsersSQLUndoesItAndIsStored(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	for i := range 3 {
		r, err := e.Submit(t.Context(), on("book", "L-1", "b", 30, "refuse"))
		require.Truef(t, err == nil && r.Status == 409 && r.Version == 0 && r.Position == 0 && r.Replayed == (i > 0), "got %+v, %v", r, err)
		e := r.Err()
		wantCode(t, e, workflow.GuardRefused)
		assert.Truef(t, strings.Contains(e.Error(), "the limit is reached") && strings.Contains(string(r.Body), `"state":"open"`),
			"the caller is told %s", r.Body)
	}
	wantMore(t, pool, before, map[string]int{"pawl.command": 1})
	inst, err := e.Read().InstanceByKey(t.Context(), "", "loan", "L-1")
	assert.Truef(t, err == nil && inst.Version == 1, "got %+v, %v", inst, err)
	own := errLimit.(*workflow.Error)
	assert.Equalf(t, workflow.State(""), own.State, "the user's own value was changed: %+v", own)
}

func TestInTx_Timeout(t *testing.T) {
	t.Parallel()
	pool := database(t)
	sleepy := func(ctx context.Context, tx pgx.Tx, _ loan, p payment) error {
		if p.Do == "" {
			return nil
		}
		_, err := tx.Exec(ctx, "SELECT pg_sleep(60)")
		return err
	}
	e := newEngine(t, pool, func(c *engine.Config) {
		c.Pipeline.HookTimeout = 200 * time.Millisecond
		c.Workflows = []workflow.Source{loans(1, engine.InTx(workflow.On("buy", workflow.From("open"), workflow.Stay, pay).Or("settled"),
			sleepy))}
	})
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	wantCode(t, errOf(e.Submit(t.Context(), on("buy", "L-1", "slow", 1, "sleep"))), workflow.TimedOut)
	wantMore(t, pool, before, nil)
	eventually(t, "it is done when it takes no time, which a busy machine may not give it at once", func() bool {
		r, err := e.Submit(t.Context(), on("buy", "L-1", "slow", 1, ""))
		require.False(t, err != nil && workflow.CodeOf(err) != workflow.TimedOut, err)
		return err == nil && !r.Refused()
	})
	wantMore(t, pool, before, oneTransition)
}
