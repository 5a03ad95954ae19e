package retention_test

import (
	"context"
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

	"github.com/pawlhq/pawl/engine/internal/retention"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

func TestKeysGoTheirWayAndPartitionsComeAndGo(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	c := newClock("2040-01-02") // a Monday
	exec(t, pool, "INSERT INTO pawl.horizon (workflow, replay, tombstone, history, history_kept) VALUES ('kept', '1 day', '10 days', true, "+
		"'60 days')")
	traffic(t, pool, c.now(), 50)
	r := runner(t, pool, "a", c)
	eventually(t, "it has begun", func() bool { return r.Stats().Batches > 0 })
	assert.Equal(t, 0, ask[int](t, pool, "SELECT count(*) FROM pawl.command WHERE status = 'expired'"), "tombstones before their time")
	c.skip(day + time.Second)
	eventually(t, "answers are dropped", func() bool { return r.Stats().Expired == 100 })
	n := ask[int](t, pool, "SELECT count(*) FROM pawl.command_history")
	assert.Truef(t, n == 50 && r.Stats().Archived == 50, "%d in the history", n)
	c.skip(10 * day)
	eventually(t, "the shorter tombstones are forgotten", func() bool { return r.Stats().Forgotten == 50 })
	assert.Equal(t, "2040w01", weeks(t, pool), "weeks")
	for _, table := range []string{"outbox_2040w04", "command_history_2040m02"} {
		eventually(t, table+" is made ahead", func() bool {
			return ask[*string](t, pool, "SELECT to_regclass('pawl.' || $1)::text", table) != nil
		})
	}
	c.skip(20 * day)
	eventually(t, "the others are forgotten", func() bool { return r.Stats().Forgotten == 100 })
	c.skip(8 * day)
	eventually(t, "the week is dropped", func() bool { return weeks(t, pool) == "" })
	assert.Equal(t, 50, ask[int](t, pool, "SELECT count(*) FROM pawl.command_history"), "in the history")
	c.skip(60 * day)
	eventually(t, "the month is dropped", func() bool { return ask[int](t, pool, "SELECT count(*) FROM pawl.command_history") == 0 })
}

func TestSettledLettersAndMessagesAreForgotten(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	exec(t, pool, `INSERT INTO pawl.outbox_dead (tenant, sink, position, type, ordinal, workflow, instance, status, kind, failure, attempts,
		created_at, updated_at, changed_by)
		SELECT 't', 's', n, s, 0, 'w', gen_random_uuid(), s, 'k', 'f', 1, '2040-01-01', '2040-01-01', 'ann'
		FROM unnest(ARRAY['waiting', 'queued', 'redriven', 'skipped']) AS s, generate_series(1, 15) AS n;
		INSERT INTO pawl.inbox_dead (tenant, consumer, message, hash, type, size, body, status, code, failure, deliveries, created_at, updated_at,
			changed_by)
		SELECT 't', 'c', n || s, sha256('x'), '', 0, '', s, 'x', 'f', 1, '2040-01-01', '2040-01-01', 'ann'
		FROM unnest(ARRAY['waiting', 'retried', 'discarded']) AS s, generate_series(1, 15) AS n;
		INSERT INTO pawl.inbox_kept SELECT 't', 'c', n, sha256('x'), '2040-01-01', '2040-01-31'::timestamptz + (n % 2) * interval '1 year', '', ''
		FROM generate_series(1, 30) AS n`)
	c := newClock("2040-01-30")
	r := runner(t, pool, "a", c, func(c *retention.Config) { c.Batch = 10 })
	left := func() int {
		return ask[int](t, pool, "SELECT (SELECT count(*) FROM pawl.outbox_dead) + (SELECT count(*) FROM pawl.inbox_dead) + "+
			"(SELECT count(*) FROM pawl.inbox_kept)")
	}
	eventually(t, "it has begun", func() bool { return r.Stats().Batches > 0 })
	assert.Equal(t, 9*15, left(), "left before their time")
	c.skip(2 * day)
	eventually(t, "they are forgotten", func() bool { return left() == 4*15 })
}

// Events stay for as long as a sink has not got them, dead, paused or alive, and
// for as long as one of them is a dead letter that may still be delivered.
func TestPurge_KeepsSinkEvents(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	c := newClock("2040-01-02")
	for range 4 {
		traffic(t, pool, c.now(), 10)
		c.skip(7 * day)
	}
	exec(t, pool, `INSERT INTO pawl.outbox_sink (name, tenants, paused_at, paused_by)
		VALUES ('all', NULL, now(), 'ann'), ('one', '{t1}', NULL, NULL);
		INSERT INTO pawl.outbox_cursor (tenant, sink, position, updated_at)
			VALUES ('t1', 'all', 40, now()), ('t2', 'all', 15, now()), ('t1', 'one', 25, now());
		INSERT INTO pawl.outbox_dead (tenant, sink, position, type, ordinal, workflow, instance, status, kind, failure, attempts, created_at,
			updated_at)
		VALUES ('t1', 'gone', 3, 'e', 0, 'w', gen_random_uuid(), 'waiting', 'k', 'f', 1, now(), now())`)
	c.skip(100 * day)
	r := runner(t, pool, "a", c)
	wait := func(want string) {
		t.Helper()
		c.skip(11 * time.Minute)
		before := r.Stats().Batches
		eventually(t, "it has looked", func() bool { return r.Stats().Batches > before+1 })
		assert.Equal(t, want, weeks(t, pool), "weeks")
	}
	wait("2040w01 2040w02 2040w03 2040w04")
	standing, err := r.Standing(t.Context())
	assert.Truef(t, err == nil && standing.Node == "a" && standing.Since != nil, "%+v, %v", standing, err)
	held := map[string]string{}
	for _, p := range standing.Partitions {
		held[p.Name] = p.Held
	}
	for week, want := range map[string]string{"outbox_2040w01": `a dead letter of sink "gone" waits, of position 3 of tenant "t1"`,
		"outbox_2040w02": `sink "all" is at position 15 of tenant "t2"`, "outbox_2040w04": `sink "one" is at position 25 of tenant "t1"`} {
		assert.Equalf(t, want, held[week], "%s is held because", week)
	}
	exec(t, pool, "UPDATE pawl.outbox_dead SET status = 'skipped', changed_by = 'ann'")
	wait("2040w02 2040w03 2040w04")
	exec(t, pool, "UPDATE pawl.outbox_cursor SET position = 40 WHERE sink = 'all'")
	wait("2040w03 2040w04")
	exec(t, pool, "DELETE FROM pawl.outbox_sink WHERE name = 'one'")
	wait("")
}

// The lease is so long that it does not expire on a slow machine; the test expires it.
func TestOneNodeWorksAndAnotherTakesOver(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	c := newClock("2040-01-02")
	own := another(t, pool, nil)
	looks := &intruder{do: func() {}}
	others := another(t, pool, looks)
	var nodes []*retention.Runner
	for i, p := range []*pgxpool.Pool{own, others, others} {
		nodes = append(nodes, runner(t, p, fmt.Sprint("node ", i), c, seldom))
		if i == 0 {
			eventually(t, "the first works", func() bool { return nodes[0].Stats().Batches > 0 })
		}
	}
	first := ask[int64](t, pool, "SELECT token FROM pawl.leadership")
	before, looked := nodes[0].Stats().Batches, looks.asked.Load()
	woken(t, "the first goes on, and the others look", func() bool {
		return nodes[0].Stats().Batches > before+3 && looks.asked.Load() > looked+6
	}, nodes...)
	n := nodes[1].Stats().Batches + nodes[2].Stats().Batches
	assert.Equal(t, int64(0), n, "the others have done batches")
	own.Close() // it dies, and gives nothing back
	left := ask[time.Duration](t, pool, "SELECT locked_until - clock_timestamp() FROM pawl.leadership")
	assert.Truef(t, left > time.Hour && left <= 3*time.Hour, "its lease lasts for %s", left)
	exec(t, pool, "UPDATE pawl.leadership SET locked_until = clock_timestamp()")
	woken(t, "another works", func() bool { return nodes[1].Stats().Batches+nodes[2].Stats().Batches > 1 }, nodes[1:]...)
	assert.NotEqual(t, (nodes[2].Stats().Batches > 0), nodes[1].Stats().Batches > 0, "both others work")
	assert.Equal(t, first+1, ask[int64](t, pool, "SELECT token FROM pawl.leadership"), "the fencing token does not count")
	// A node that stops gives it back at once.
	holder, other := nodes[1], nodes[2]
	if nodes[2].Stats().Batches > 0 {
		holder, other = other, holder
	}
	holder.Stop()
	holder.Stop()
	woken(t, "the last works", func() bool { return other.Stats().Batches > 0 }, other)
}

// intruder does something just before the first query that has a text in it. It
// counts all.
type intruder struct {
	before string
	once   sync.Once
	do     func()
	asked  atomic.Int64
}

func (i *intruder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	i.asked.Add(1)
	if strings.Contains(d.SQL, i.before) {
		i.once.Do(i.do)
	}
	return ctx
}

func (i *intruder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A partition that is needed after all, when it is detached already, comes back.
// So does one that an operator has detached before its time.
func TestADetachedPartitionThatIsNeededComesBack(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	c := newClock("2040-01-02")
	traffic(t, pool, c.now(), 10)
	exec(t, pool, `INSERT INTO pawl.outbox_sink (name, tenants) VALUES ('one', '{t1}');
		INSERT INTO pawl.outbox_cursor (tenant, sink, position, updated_at) VALUES ('t1', 'one', 10, now())`)
	old := c.now()
	c.skip(100 * day)
	traffic(t, pool, c.now(), 10)
	exec(t, pool, "ALTER TABLE pawl.outbox DETACH PARTITION pawl.outbox_2040w15 CONCURRENTLY")
	i := &intruder{before: "DETACH PARTITION", do: func() {
		exec(t, pool, `INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
			VALUES ('t1', 21, 'late', 0, 'w', gen_random_uuid(), 1, 't', 's', $1)`, old)
	}}
	r := runner(t, another(t, pool, i), "a", c)
	eventually(t, "both are back", func() bool {
		return weeks(t, pool) == "2040w01 2040w15" && r.Stats().Batches > 0
	})
	n := ask[int](t, pool, "SELECT count(*) FROM pawl.outbox WHERE type = 'late'")
	assert.Truef(t, n == 1 && r.Stats().Failures == 0, "%d late events, %+v", n, r.Stats())
	exec(t, pool, "UPDATE pawl.outbox_cursor SET position = 21")
	c.skip(11 * time.Minute)
	r.Wake()
	eventually(t, "what is needed no more is dropped", func() bool { return weeks(t, pool) == "2040w15" })
}

// A batch that is too much for the database, or for the role's timeout, is tried
// again with less.
func TestABatchThatTakesTooLongIsMadeSmaller(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectPool(t) // the timeout is that of new sessions
	c := newClock("2040-01-02")
	traffic(t, pool, c.now(), 250)
	exec(t, pool, `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.003); RETURN NEW; END $$;
		CREATE TRIGGER slow BEFORE UPDATE ON pawl.command FOR EACH ROW EXECUTE FUNCTION slow();
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = 700', current_database()); END $$`)
	c.skip(2 * day)
	r := runner(t, another(t, pool, nil), "a", c)
	eventually(t, "all are seen to", func() bool { return r.Stats().Expired == 500 })
	assert.NotEqual(t, int64(0), r.Stats().Failures, "nothing took too long")
}

// A dump reads every table for hours, and no week can be detached meanwhile.
func TestKeysExpireWhileSomebodyReadsAnOldWeek(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectPool(t) // the timeout is that of new sessions
	c := newClock("2040-01-02")
	traffic(t, pool, c.now(), 10)
	c.skip(60 * day)
	traffic(t, pool, c.now(), 250)
	c.skip(2 * day)
	reader, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = reader.Rollback(context.Background()) }() // it has only read
	_, err = reader.Exec(t.Context(), "SELECT FROM pawl.outbox LIMIT 1")
	require.NoError(t, err)
	exec(t, pool, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = 1000', current_database()); END $$")
	r := runner(t, another(t, pool, nil), "a", c, func(c *retention.Config) { c.Batch, c.Every = 100, time.Hour })
	eventually(t, "all are seen to", func() bool { return r.Stats().Expired == 520 })
	s := r.Stats()
	assert.Truef(t, s.Failures != 0 && s.Dropped == 0, "nothing was in the way: %+v", s)
}

// A transaction that was open for long has an early time and a late position. So
// positions do not tell the week.
func TestADeadLetterHoldsTheWeekThatItsEventIsIn(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	c := newClock("2040-01-02")
	traffic(t, pool, c.now(), 10)
	c.skip(7 * day)
	traffic(t, pool, c.now(), 10)
	exec(t, pool, `UPDATE pawl.outbox SET at = at + interval '7 days' WHERE tenant = 't1' AND position = 5;
		INSERT INTO pawl.outbox_dead (tenant, sink, position, type, ordinal, workflow, instance, status, kind, failure, attempts, created_at,
			updated_at)
		VALUES ('t1', 'gone', 5, 'e', 0, 'w', gen_random_uuid(), 'queued', 'k', 'f', 1, now(), now()),
			('t1', 'other', 6, 'another type', 0, 'w', gen_random_uuid(), 'waiting', 'k', 'f', 1, now(), now())`)
	c.skip(100 * day)
	r := runner(t, pool, "a", c)
	eventually(t, "what nobody needs is dropped", func() bool { return weeks(t, pool) == "2040w02" })
	s, err := r.Standing(t.Context())
	require.NoError(t, err)
	for _, p := range s.Partitions {
		assert.Falsef(t, p.Name == "outbox_2040w02" && p.Held != `a dead letter of sink "gone" waits, of position 5 of tenant "t1"`,
			"it is held because %q", p.Held)
	}
}

// killer ends the session of the n-th query that a runner sends, just before it,
// or while the server works on it.
type killer struct {
	pool *pgxpool.Pool
	mu   sync.Mutex
	left int
	hit  string
}

func (k *killer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left--; k.left == 0 {
		k.hit = d.SQL
		if _, err := k.pool.Exec(ctx, "SELECT pg_terminate_backend($1, 5000)", conn.PgConn().PID()); err != nil {
			k.hit = err.Error()
		}
	}
	return ctx
}

func (k *killer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Wherever a runner is killed, the next one continues, and every command is in exactly one table.
func TestPurge_KilledAtAnyStatement(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		pool := pgtest.DirectPool(t) // its connections are killed by their process numbers
		c := newClock("2040-01-02")
		exec(t, pool, `DO $$ DECLARE made regclass; BEGIN
			FOR made IN SELECT inhrelid FROM pg_inherits WHERE inhparent IN ('pawl.outbox'::regclass, 'pawl.command_history'::regclass) LOOP
				EXECUTE 'DROP TABLE ' || made; -- those of today, so that there is less to do
			END LOOP; END $$`)
		exec(t, pool, "INSERT INTO pawl.horizon (workflow, replay, tombstone, history, history_kept) VALUES ('kept', '1 day', '300 days', "+
			"true, '30 days')")
		traffic(t, pool, c.now(), 40)
		c.skip(200 * day)
		traffic(t, pool, c.now(), 40)
		c.skip(2 * day)
		k := &killer{pool: pool, left: n}
		r := runner(t, another(t, pool, k), "a", c, seldom, func(c *retention.Config) { c.Batch = 60 })
		turns := int64(0)
		eventually(t, fmt.Sprint("all is done, though killed at statement ", n), func() bool {
			whole(t, pool)
			s, purged := r.Stats(), ask[int](t, pool, `SELECT count(*) FROM pawl.command WHERE status = 'expired'`) == 120
			if s.Batches+s.Failures > turns {
				turns = s.Batches + s.Failures
				if purged {
					c.skip(11 * time.Minute) // it looks at the partitions again
				}
				r.Wake()
			}
			return purged && weeks(t, pool) == "2040w29" &&
				ask[int](t, pool, "SELECT count(*) FROM pawl.command_history") == 40 && ask[int](t, pool, `SELECT count(*) FROM pg_class
					WHERE relnamespace = 'pawl'::regnamespace AND relkind = 'r' AND relname ~ '_2040[wm]' AND NOT relispartition`) == 0
		})
		k.mu.Lock()
		hit := k.hit
		k.left = 0
		k.mu.Unlock()
		if hit != "" {
			eventually(t, "it notices", func() bool { return r.Stats().Failures > 0 })
		}
		r.Stop()
		t.Logf("%d: %.60s", n, strings.Join(strings.Fields(hit), " "))
		if hit == "" {
			assert.Truef(t, n >= 10, "only %d statements", n)
			return
		}
	}
}

// whole checks that every command is in exactly one place: its answer is in its
// row, or in the history, or nowhere once the history's month is gone.
func whole(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	// Rows may be committed after a statement was planned, in a partition that the plan does not include. So the snapshot is taken before the
	// plan.
	tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }() // it has only read
	ask[int](t, tx, "SELECT 1")
	// A commit is seen a moment before other sessions hear of the partition that it made.
	// The snapshot stays the same, so what is missing in it is missing however often it is asked.
	eventually(t, "every answer is in one place", func() bool {
		return ask[int](t, tx, `SELECT count(*) FROM pawl.command AS c LEFT JOIN pawl.command_history AS h USING (tenant, scope, key)
		WHERE (c.status = 'succeeded') AND h.key IS NOT NULL
			OR c.status = 'expired' AND c.workflow = 'kept' AND c.finished_at > '2040-06-01' AND h.key IS NULL`) == 0
	})
}

// A removal that was interrupted while it waited for readers is finished.
func TestADetachThatWasInterruptedIsFinished(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectPool(t) // one of its connections is ended by its process number
	c := newClock("2040-01-02")
	traffic(t, pool, c.now(), 10)
	reader, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = reader.Exec(t.Context(), "SELECT FROM pawl.outbox LIMIT 1")
	require.NoError(t, err)
	conn, err := another(t, pool, nil).Acquire(t.Context())
	require.NoError(t, err)
	detached := make(chan error, 1)
	go func() {
		defer conn.Release()
		_, err := conn.Exec(context.Background(), "ALTER TABLE pawl.outbox DETACH PARTITION pawl.outbox_2040w01 CONCURRENTLY")
		detached <- err
	}()
	pgtest.WaitBlockedPID(t, pool, conn.Conn().PgConn().PID())
	exec(t, pool, "SELECT pg_terminate_backend($1)", conn.Conn().PgConn().PID())
	require.Error(t, <-detached, "it was not interrupted")
	require.NoError(t, reader.Commit(t.Context()))
	c.skip(60 * day)
	runner(t, pool, "a", c)
	eventually(t, "it is finished", func() bool { return ask[*string](t, pool, "SELECT to_regclass('pawl.outbox_2040w01')::text") == nil })
	traffic(t, pool, newClock("2040-01-02").now().Add(time.Hour), 10) // and can be made again
}

func TestAnIdleRunnerAsksOnceAPeriod(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	c := newClock("2040-01-02")
	const period = 400 * time.Millisecond
	i := &intruder{do: func() {}}
	r := runner(t, another(t, pool, i), "a", c, func(c *retention.Config) { c.Every = period })
	eventually(t, "it is at rest", func() bool { return r.Stats().Batches > 1 })
	before, begun := i.asked.Load(), time.Now()
	await.Pass("nothing happens", 4*period)
	n := i.asked.Load() - before
	took := time.Since(begun)
	assert.Truef(t, n <= int64(took/period)+1, "%d queries in %s", n, took)
}
