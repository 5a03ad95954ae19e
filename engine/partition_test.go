package engine_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
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
