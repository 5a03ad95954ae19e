package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/inbox"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/clock"
	"github.com/pawlhq/pawl/internal/kernel/loop"
	"github.com/pawlhq/pawl/internal/kernel/store"
)

// Config is what a runner needs. Every field must be set but those that say otherwise.
type Config struct {
	Pool      *pgxpool.Pool
	In        func(sql string) string // puts the schema's name into a statement
	Node      string                  // who holds the lease
	Clock     *clock.Clock            // by which keys expire
	Busy      func() float64          // how busy the commit pipeline was since it was asked last, from 0 to 1
	Workflows []string                // the workflows that this node knows, whose commands it ends itself
	Replay    time.Duration           // how long an answer is replayed where no workflow says it
	Outbox    time.Duration           // how old an event is at least when it is removed
	Batch     int                     // rows in one transaction, at most
	Off       bool                    // this node only tells how it stands
	Every     time.Duration           // between polls when there is nothing to do; 0: 30 s
	Log       *slog.Logger
}

const (
	every     = 30 * time.Second
	lull      = 2 * time.Second  // between polls while there is always something
	tendEvery = 10 * time.Minute // between checks of the partitions, and of work that no node knows
	budget    = 30 * time.Second // of one statement
	leases    = 3                // polls that may fail before another node takes over
)

// Runner does the work of one node. It is safe for concurrent use.
type Runner struct {
	*loop.Loop
	config   Config
	messages *inbox.Table
	stats    counters

	// The loop's own.
	token   int64 // of the lease; 0: it is another's
	batch   int
	behind  time.Time // since when every batch was full; zero: the last was not
	passed  *string   // where the last batch of scheduled commands stopped; nil: at the end
	since   time.Time // no key is due before, as far as is known
	tended  time.Time
	reached *time.Time // where the last batch of work that no node knows ended; nil: at the end
}

// New makes a runner; Start begins its work.
func New(c Config) *Runner {
	if c.Every == 0 {
		c.Every = every
	}
	return &Runner{
		Loop:     loop.New(),
		config:   c,
		messages: inbox.NewTable(c.Pool, c.In),
		batch:    min(c.Batch, firstBatch),
	}
}

// Start begins to work.
func (r *Runner) Start() {
	if !r.config.Off {
		r.Loop.Start(r.poll, r.release)
	}
}

// poll does what there is to do now, and returns the delay before the next poll.
func (r *Runner) poll(ctx context.Context) time.Duration {
	var err error
	wait := r.config.Every
	if r.token == 0 {
		err = r.claim(ctx)
	}
	if r.token != 0 && err == nil {
		wait, err = r.workOnce(ctx)
	}
	if errors.Is(err, errLost) {
		r.token, r.tended = 0, time.Time{}
		r.config.Log.Warn("another node has taken retention over")
		return r.config.Every
	}
	if err != nil {
		r.failed(ctx, err)
		return r.config.Every
	}
	return wait
}

// failed tells of work that is to be tried again.
func (r *Runner) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		r.stats.count(func(s *Stats) { s.Failures++ })
		r.config.Log.Warn("retention failed, and is tried again", "error", err)
	}
}

// workOnce does the work of the leader. Partitions that cannot be removed do not delay keys: a session that reads an old week for hours,
// such as a dump, keeps the partition from being detached, and each attempt takes time. So the next attempt comes no sooner than after a
// success.
func (r *Runner) workOnce(ctx context.Context) (time.Duration, error) {
	now := r.config.Clock.Now()
	tends := now.Sub(r.tended).Abs() >= tendEvery
	if tends {
		r.tended, r.since = now, time.Time{}
		if err := r.tend(ctx); errors.Is(err, errLost) {
			return 0, err
		} else if err != nil {
			r.failed(ctx, err)
		}
	}
	if tends || r.reached != nil {
		if err := r.giveUp(ctx); err != nil {
			r.failed(ctx, err)
		}
	}
	wait, err := r.purge(ctx)
	if r.reached != nil { // there is more that is due
		wait = min(wait, lull)
	}
	return wait, err
}

// lease is how long the lease lasts, in microseconds.
func (r *Runner) lease() int64 { return (leases * r.config.Every).Microseconds() }

// errLost is the end of a lease.
var errLost = errors.New("retention: the lease is another's")

// claim takes the lease, if nobody has it.
func (r *Runner) claim(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	var taken string
	err := r.config.Pool.QueryRow(ctx, r.config.In(claimSQL), pgx.QueryExecModeExec, r.config.Node, r.lease()).Scan(&r.token, &taken)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil && taken != "" {
		r.config.Log.Warn("took retention over from a node whose lease ran out", "from", taken)
	}
	return err
}

// keep prolongs the lease.
func (r *Runner) keep(ctx context.Context) error {
	tag, err := r.exec(ctx, keepSQL, r.token, r.lease())
	if err == nil && tag.RowsAffected() == 0 {
		return errLost
	}
	return err
}

// release gives the lease back.
func (r *Runner) release(ctx context.Context) {
	if r.token == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if _, err := r.exec(ctx, releaseSQL, r.token); err != nil {
		r.config.Log.Warn("retention could not be released; another node takes over when its lease expires", "error", err)
	}
	r.token = 0
}

// exec runs a statement with a bound on its time.
func (r *Runner) exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	return r.config.Pool.Exec(ctx, r.config.In(sql), append([]any{pgx.QueryExecModeExec}, args...)...)
}

// Stats are counters of this node since its start.
type Stats struct {
	Batches   int64 // transactions that looked for keys that are due
	Expired   int64 // answers that became tombstones, or were forgotten at once
	Forgotten int64 // tombstones that were deleted
	Abandoned int64 // commands that failed because nobody went on with them
	Archived  int64 // commands that went to the history
	Dropped   int64 // partitions
	Failures  int64 // turns that failed, and were tried again
}

// counters count a batch at once, so that its numbers belong together.
type counters struct {
	mu sync.Mutex
	Stats
}

func (c *counters) count(what func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what(&c.Stats)
}

// Stats reads the counters.
func (r *Runner) Stats() (now Stats) {
	r.stats.count(func(s *Stats) { now = *s })
	return now
}

// Standing tells who does retention for the database, and what waits. It needs no started runner.
func (r *Runner) Standing(ctx context.Context) (inspect.Retention, error) {
	s := inspect.Retention{KeepEvents: int64(r.config.Outbox / time.Second)}
	err := r.config.Pool.QueryRow(ctx, r.config.In(leaderSQL), pgx.QueryExecModeExec).Scan(&s.Node, &s.Since, &s.Until)
	if err != nil {
		return s, fmt.Errorf("read who does retention: %w", err)
	}
	if err := r.config.Pool.QueryRow(ctx, r.config.In("SELECT ("+store.OldestExpirySQL+")"), pgx.QueryExecModeExec).Scan(&s.Next); err != nil {
		return s, fmt.Errorf("read what is due next: %w", err)
	}
	list, err := r.partitions(ctx)
	if err == nil {
		err = r.judge(ctx, list, r.config.Clock.Now())
	}
	for i := range list {
		s.Partitions = append(s.Partitions, list[i].Partition)
	}
	return s, err
}

// Leaders tells what one node does for all, and which node that is. It needs no started runner.
func (r *Runner) Leaders(ctx context.Context) (nodes map[string]string, err error) {
	found, err := r.config.Pool.Query(ctx, r.config.In(leadersSQL), pgx.QueryExecModeExec)
	if err != nil {
		return nil, fmt.Errorf("read who leads: %w", err)
	}
	nodes = map[string]string{}
	var what, node string
	_, err = pgx.ForEachRow(found, []any{&what, &node}, func() error { nodes[what] = node; return nil })
	return nodes, err
}

// claimSQL takes the lease if it is free. It returns the holder that has not released it. Parameters: node, length of the lease in
// microseconds.
const claimSQL = `
UPDATE {pawl}.leadership AS d SET token = d.token + 1, claimed_by = $1, claimed_at = clock_timestamp(),
	locked_until = clock_timestamp() + $2::bigint * interval '1 microsecond'
FROM (SELECT x.ctid AS row, x.claimed_by AS taken FROM {pawl}.leadership x
	WHERE x.name = 'retention' AND (x.locked_until IS NULL OR x.locked_until < clock_timestamp()) FOR NO KEY UPDATE SKIP LOCKED) AS found
WHERE d.ctid = found.row
RETURNING d.token, coalesce(found.taken, '')`

// keepSQL prolongs the lease. Parameters: token, length in microseconds.
const keepSQL = `
UPDATE {pawl}.leadership SET locked_until = clock_timestamp() + $2::bigint * interval '1 microsecond' WHERE name = 'retention' AND token = $1`

// releaseSQL gives the lease back. Parameter: token.
const releaseSQL = `
UPDATE {pawl}.leadership SET claimed_by = NULL, claimed_at = NULL, locked_until = NULL WHERE name = 'retention' AND token = $1`

// purgeSQL prolongs the lease and purges, or returns no row. The last column is when the next key is due, as it was before. Parameters:
// token, length of the lease in microseconds, batch, now, how long an answer is replayed in microseconds, the workflows that this node
// decides, where the last one stopped, and since when keys are looked for.
var purgeSQL = `
WITH kept AS (` + keepSQL + ` RETURNING $4::timestamptz AS moment)
SELECT p.expired, p.forgotten, p.abandoned, p.archived, p.passed::text,
	(` + store.NextExpiry("$8::timestamptz") + `)
FROM kept CROSS JOIN LATERAL {pawl}.purge(batch => $3::int, moment => kept.moment, replay => $5::bigint * interval '1 microsecond',
	decided => $6::text[], after => $7::json, since => $8::timestamptz) AS p`

// aheadSQL makes partitions. Parameter: now.
const aheadSQL = `SELECT {pawl}.make_partitions($1)`

// listSQL lists the partitions, the oldest first, those that are detached as well.
// Their names say their times. One that is being dropped has no size.
const listSQL = `
SELECT c.relname, c.relname LIKE 'outbox%', coalesce(i.inhdetachpending, false), i.inhparent IS NULL, pg_has_role(c.relowner, 'USAGE'),
	p.begins AT TIME ZONE 'UTC', (p.begins + CASE WHEN c.relname LIKE 'outbox%' THEN interval '1 week'
		ELSE interval '1 month' END) AT TIME ZONE 'UTC',
	greatest(c.reltuples, 0)::bigint, coalesce(pg_total_relation_size(c.oid), 0)
FROM pg_class AS c LEFT JOIN pg_inherits AS i ON i.inhrelid = c.oid
CROSS JOIN LATERAL (SELECT to_date(substring(c.relname, '_([^_]+)$'),
	CASE WHEN c.relname LIKE 'outbox%' THEN 'IYYY"w"IW' ELSE 'YYYY"m"MM' END)::timestamp AS begins) AS p
WHERE c.relnamespace = (SELECT p.relnamespace FROM pg_class AS p WHERE p.oid = '{pawl}.leadership'::regclass) AND c.relkind = 'r'
	AND c.relname ~ '^(outbox_[0-9]{4,}w[0-5][0-9]|command_history_[0-9]{4,}m(0[1-9]|1[0-2]))$'
ORDER BY c.relname`

// detachSQL detaches a partition for a role that owns nothing. Parameter: its name.
const detachSQL = `SELECT {pawl}.detach_partition($1)`

// dropSQL drops a detached partition. Parameter: its name.
const dropSQL = `SELECT {pawl}.drop_partition($1)`

// backSQL attaches a detached partition again. Parameters: its table, when it begins.
const backSQL = `SELECT {pawl}.make_partition($1, $2)`

// leadersSQL is who has which lease now.
const leadersSQL = `SELECT name, claimed_by FROM {pawl}.leadership WHERE locked_until > clock_timestamp()`

// leaderSQL is who has the lease.
const leaderSQL = `SELECT coalesce(claimed_by, ''), claimed_at, locked_until FROM {pawl}.leadership WHERE name = 'retention'`
