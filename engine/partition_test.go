package engine_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/kernel/sqlstate"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A clock that skips by weeks and years finds no partition for its events, and
// the commands are done all the same: by every way there is to do one.
func TestPartitions_ClockSkips(t *testing.T) {
	pgtest.NeedsOwner(t) // others make no partition that is more than a year away
	t.Parallel()
	pool := database(t)
	var now atomic.Pointer[time.Time]
	set := func(at string) {
		moment, err := time.Parse(time.DateOnly, at)
		require.NoError(t, err)
		now.Store(&moment)
	}
	set("2026-01-02")
	nodes := make([]*engine.Engine, 2)
	for i := range nodes {
		nodes[i] = newEngine(t, pool, func(c *engine.Config) {
			c.Now = func() time.Time { return *now.Load() }
			c.Replay = 365 * 24 * time.Hour
		})
	}
	for _, at := range []string{"2026-03-01", "2031-06-30", "1987-12-31", "2101-01-01"} {
		set(at)
		var callers sync.WaitGroup
		for i := range 40 {
			callers.Go(func() {
				c := applied(fmt.Sprintf("%s-%d", at, i), 100)
				r, err := nodes[i%2].Submit(t.Context(), c)
				for workflow.CodeOf(err) == workflow.Locked { // retention has the table, and the machine is busy
					r, err = nodes[i%2].Submit(t.Context(), c)
				}
				assert.Truef(t, err == nil && !r.Refused(), "%s: %+v, %v", at, r, err)
			})
		}
		callers.Wait()
		both := func(tx pgx.Tx) error {
			set(at[:3] + "9" + at[4:])
			for n := range 2 {
				r, err := nodes[0].SubmitTx(t.Context(), tx, applied(fmt.Sprint(at, " tx ", n), 100))
				if err == nil {
					err = r.Err()
				}
				if err != nil {
					return err
				}
				set(at[:3] + "8" + at[4:]) // also while its transaction is open
			}
			return nil
		}
		err := pgx.BeginFunc(t.Context(), pool, both)
		for workflow.CodeOf(err) == workflow.Locked { // retention removes a partition just now
			err = pgx.BeginFunc(t.Context(), pool, both)
		}
		require.NoError(t, err, at)
	}
	assert.Equal(t, 4*42, query[int](t, pool, "SELECT count(*)::int FROM pawl.audit WHERE position > 0"), "transitions")
	n := query[int](t, pool, `SELECT count(*)::int FROM pawl.audit AS a JOIN pawl.outbox AS o
		ON o.tenant = a.tenant AND o.position = a.position AND o.ordinal = 0 AND o.at = a.at`)
	assert.Equal(t, 4*42, n, "transitions with their event")
	v, err := nodes[0].Admin().Verify(t.Context(), transitions.DefaultTenant, [16]byte{})
	assert.Truef(t, err == nil && len(v.Broken) == 0, "%+v, %v", v, err)
}

// A session may miss that another one has made a partition, for as long as it lives:
// seen on PostgreSQL 18 under load, for 30 s. Its commands are done on a new one. Here
// a trigger is what makes the first sessions deaf.
func TestPartitions_StaleSession(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectTo(t, database(t)) // a pooler would give it the same one
	e := newEngine(t, pool)
	submit(t, e, applied("L-1", 100))
	exec(t, pool, `CREATE TABLE public.deaf (pid int);
		CREATE FUNCTION public.deaf() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF EXISTS (SELECT FROM public.deaf WHERE pid = pg_backend_pid()) THEN
				RAISE EXCEPTION 'no partition of relation "outbox" found for row' USING ERRCODE = '23514', SCHEMA = 'pawl', TABLE = 'outbox';
			END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER deaf BEFORE INSERT ON pawl.outbox FOR EACH ROW EXECUTE FUNCTION public.deaf();
		INSERT INTO public.deaf SELECT pid FROM pg_stat_activity WHERE datname = current_database()`)
	for i := range 3 {
		submit(t, e, applied(fmt.Sprint("L-2 ", i), 100))
	}
}

// An open transaction that has created a partition blocks others that need one no longer than any other lock does, even behind a pooler.
func TestPartitions_CreationBlocked(t *testing.T) {
	t.Parallel()
	for name, pool := range map[string]*pgxpool.Pool{"direct": database(t), "pooled": through(t, pgx.QueryExecModeExec)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var later atomic.Bool
			e := newEngine(t, pool, func(c *engine.Config) {
				c.Listen, c.Pipeline.LockWait = "", 300*time.Millisecond
				c.Now = func() time.Time {
					if later.Load() {
						return noon.AddDate(1, 0, 0)
					}
					return noon
				}
			})
			tx := begin(t, pool)
			_, err := tx.Exec(t.Context(), "SELECT pawl.make_partition('outbox', '2044-01-01')")
			require.NoError(t, err)
			later.Store(true)
			wantCode(t, errOf(e.Submit(t.Context(), applied("L-1", 100))), workflow.Locked)
			rollback(t, tx)
			eventually(t, "it can be made", func() bool {
				r, err := e.Submit(t.Context(), applied("L-1", 100))
				if err != nil && workflow.CodeOf(err) != workflow.Locked { // a busy machine may need longer than the wait
					t.Fatal(err)
				}
				return err == nil && !r.Refused()
			})
		})
	}
}

// obstacle raises an error in Pawl's own statements, as often as is wanted. A sequence counts, because it survives a rollback.
const obstacle = `
	CREATE SCHEMA hindrance;
	CREATE TABLE hindrance.obstacle (state text, con text, tab text, times int);
	CREATE TABLE hindrance.flag (raised int);
	CREATE SEQUENCE hindrance.raised;
	GRANT USAGE ON SCHEMA hindrance TO PUBLIC;
	GRANT ALL ON ALL TABLES IN SCHEMA hindrance TO PUBLIC;
	GRANT ALL ON ALL SEQUENCES IN SCHEMA hindrance TO PUBLIC;
	CREATE FUNCTION hindrance.raise_it() RETURNS trigger LANGUAGE plpgsql AS $$
	DECLARE o hindrance.obstacle;
	BEGIN
		SELECT * INTO o FROM hindrance.obstacle;
		IF FOUND AND nextval('hindrance.raised') <= o.times THEN
			RAISE EXCEPTION 'so it is' USING ERRCODE = o.state, CONSTRAINT = o.con, TABLE = o.tab, SCHEMA = 'pawl';
		END IF;
		RETURN NEW;
	END $$;
	CREATE TRIGGER obstacle BEFORE INSERT ON pawl.command FOR EACH ROW WHEN (NEW.key LIKE 'apply-%')
		EXECUTE FUNCTION hindrance.raise_it()`

// obstruct puts the row's error in the way so often.
func obstruct(t *testing.T, pool *pgxpool.Pool, row *sqlstate.Row, times int) {
	t.Helper()
	e := row.Example("pawl")
	exec(t, pool, `TRUNCATE hindrance.obstacle; ALTER SEQUENCE hindrance.raised RESTART`)
	exec(t, pool, `INSERT INTO hindrance.obstacle VALUES ($1, $2, $3, $4)`, e.Code, e.ConstraintName, e.TableName, times)
}

// Each row of docs/sqlstates.md has the effect that it says on callers in Go and over HTTP, and the same key helps.
func TestSQLStatesFromGo(t *testing.T) {
	t.Parallel()
	for i := range sqlstate.Rows {
		row := &sqlstate.Rows[i]
		if strings.HasPrefix(row.State, "P4") {
			continue // of the functions in SQL alone
		}
		name := strings.Join(append([]string{row.State}, row.On...), " ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			exec(t, pool, obstacle)
			e := newEngine(t, pool, withHook(runs), func(c *engine.Config) {
				c.Pipeline.LockWait, c.Pipeline.Outage = 300*time.Millisecond, 300*time.Millisecond
			})
			submit(t, e, applied("own", 100_000))
			again := func(c transitions.Command) { // the obstacle is gone
				t.Helper()
				exec(t, pool, `TRUNCATE hindrance.obstacle`)
				for range 2 {
					submit(t, e, c)
				}
				var effects int
				err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pawl.audit WHERE key = $1`, c.Key).Scan(&effects)
				assert.Truef(t, err == nil && effects == 1, "the key %s has %d effects, %v", c.Key, effects, err)
			}
			repeats := row.Class != sqlstate.Defect && row.Class != sqlstate.NoRoom
			obstruct(t, pool, row, 1)
			once := applied(name+" once", 1)
			switch _, err := e.Submit(t.Context(), once); {
			case repeats && err != nil:
				t.Errorf("once: %v, though the engine repeats it", err)
			case !repeats:
				wantCode(t, err, row.Class.Code())
			}
			again(once)

			obstruct(t, pool, row, 1_000_000)
			always := applied(name+" always", 1)
			_, err := e.Submit(t.Context(), always)
			wantCode(t, err, row.Class.Code())
			assert.Truef(t, workflow.CodeOf(err).Info().Retry, "the code %s says that the same key does not help", workflow.CodeOf(err))
			again(always)

			obstruct(t, pool, row, 1_000_000)
			within := applied(name+" within", 1)
			tx := begin(t, pool)
			wantCode(t, errOf(e.SubmitTx(t.Context(), tx, within)), row.Class.Code())
			assert.NoError(t, tx.Rollback(t.Context()))
			exec(t, pool, `TRUNCATE hindrance.obstacle`)
			tx = begin(t, pool)
			submitTx(t, e, tx, within)
			commitTx(t, tx)
			again(within)

			own := on("hook", "own", name, 1, fmt.Sprintf(`DO $$ BEGIN IF EXISTS (SELECT FROM hindrance.flag) THEN
				RAISE EXCEPTION 'so it is' USING ERRCODE = '%s'; END IF; END $$`, row.Example("").Code))
			exec(t, pool, `INSERT INTO hindrance.flag VALUES (1)`)
			wantCode(t, errOf(e.Submit(t.Context(), own)), row.OwnCode())
			exec(t, pool, `TRUNCATE hindrance.flag`)
			again(own)
		})
	}
}
