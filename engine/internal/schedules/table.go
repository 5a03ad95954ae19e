package schedules

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/schedule"
	"github.com/pawlhq/pawl/workflow"
)

// Table is the table of the progress of schedules.
type Table struct {
	pool *pgxpool.Pool
	in   func(sql string) string
}

// NewTable returns a Table; in inserts the schema's name into a statement.
func NewTable(pool *pgxpool.Pool, in func(sql string) string) *Table { return &Table{pool, in} }

// row is a claimed schedule.
type row struct {
	Tenant, Name string
	Revision     int64
	Claims       int64
	Paused       bool
	Plan         schedule.Plan
	State        schedule.State
	Extra        []extra
	Running      *uuid.UUID
	RunningKey   string
	IsRunning    bool
	Recent       []inspect.ScheduleRun
}

// extra is a run that trigger or backfill has requested.
type extra struct {
	Key string    `json:"key"`
	At  time.Time `json:"at"`
}

// nextSQL is the poll of an idle node.
const nextSQL = `SELECT due_at FROM {pawl}.schedule WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1`

// next returns when the first schedule is due.
func (t *Table) next(ctx context.Context) (at time.Time, ok bool, err error) {
	err = t.pool.QueryRow(ctx, t.in(nextSQL), pgx.QueryExecModeExec).Scan(&at)
	if err == pgx.ErrNoRows {
		return at, false, nil
	}
	return at, err == nil, err
}

// claimSQL leases due schedules. Parameters: now, the end of the lease, limit. The planner does not
// see the value of now, so it reads the index in order.
var claimSQL = `
UPDATE {pawl}.schedule AS s SET due_at = $2, claims = s.claims + 1
FROM (SELECT ctid AS place FROM {pawl}.schedule WHERE due_at IS NOT NULL AND due_at <= (SELECT $1::timestamptz)
	ORDER BY due_at LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED) AS due
WHERE s.ctid = due.place
RETURNING s.tenant, s.name, s.revision, s.claims, s.paused, s.plan::text, s.last_at, coalesce(s.held_at, '0001-01-01Z'),
	coalesce(s.extra::text, '[]'), s.running, coalesce(s.running_key, ''),
	s.running IS NOT NULL AND ` + store.Running("s.tenant", "s.running", "'pawl:schedule:' || s.name", "s.running_key") + `,
	coalesce(s.recent::text, '[]')`

func (t *Table) claim(ctx context.Context, now time.Time, lease time.Duration, limit int) ([]*row, error) {
	var list []*row
	err := t.send(ctx, func(b *pgx.Batch) {
		b.Queue(t.in(claimSQL), now, now.Add(lease), int64(limit)).Query(func(found pgx.Rows) (err error) {
			list, err = pgx.CollectRows(found, readClaim)
			return err
		})
	})
	return list, err
}

// settings restrict the statements to probes of indexes, whatever the statistics say.
const settings = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
	set_config('enable_mergejoin', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)`

// send sends statements in one message and one transaction.
func (t *Table) send(ctx context.Context, queue func(*pgx.Batch)) error {
	var b pgx.Batch
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	b.Queue(settings)
	queue(&b)
	b.Queue("COMMIT")
	return t.pool.SendBatch(ctx, &b).Close()
}

func readClaim(r pgx.CollectableRow) (*row, error) {
	var s row
	var plan, extras, recent string
	err := r.Scan(&s.Tenant, &s.Name, &s.Revision, &s.Claims, &s.Paused, &plan, &s.State.Last, &s.State.Held, &extras, &s.Running,
		&s.RunningKey, &s.IsRunning, &recent)
	if err == nil {
		err = json.Unmarshal([]byte(plan), &s.Plan)
	}
	if err == nil {
		err = json.Unmarshal([]byte(extras), &s.Extra)
	}
	if err == nil {
		err = json.Unmarshal([]byte(recent), &s.Recent)
	}
	return &s, err
}

// progress is what a step writes.
type progress struct {
	*row
	state       schedule.State
	next, due   time.Time // zero: NULL
	running     uuid.UUID
	runningKey  string
	recent      []inspect.ScheduleRun
	extraIsDone bool
}

// advanceSQL writes the progress of schedules whose claim is the newest. If the schedule was changed meanwhile, its times stay.
const advanceSQL = `
UPDATE {pawl}.schedule AS s SET
	last_at = CASE WHEN s.revision = u.revision THEN u.last_at ELSE s.last_at END,
	held_at = CASE WHEN s.revision = u.revision THEN u.held_at ELSE s.held_at END,
	next_at = CASE WHEN s.revision = u.revision THEN u.next_at ELSE s.next_at END,
	due_at = CASE WHEN s.revision = u.revision THEN u.due_at ELSE s.due_at END,
	extra = CASE WHEN s.revision = u.revision AND u.done THEN NULL ELSE s.extra END,
	running = coalesce(u.running::uuid, s.running), running_key = coalesce(u.running_key, s.running_key), recent = u.recent::json
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[], $8::timestamptz[],
	$9::boolean[], $10::text[], $11::text[], $12::text[])
	AS u(tenant, name, claims, revision, last_at, held_at, next_at, due_at, done, running, running_key, recent)
WHERE s.tenant = u.tenant AND s.name = u.name AND s.claims = u.claims`

func (t *Table) advance(ctx context.Context, list []progress) error {
	n := len(list)
	tenants, names, recents := make([]string, n), make([]string, n), make([]string, n)
	claims, revisions := make([]int64, n), make([]int64, n)
	last, held, next, due := make([]time.Time, n), make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n)
	done, running, keys := make([]bool, n), make([]*string, n), make([]*string, n)
	for i := range list {
		p := &list[i]
		tenants[i], names[i], claims[i], revisions[i] = p.Tenant, p.Name, p.Claims, p.Revision
		last[i], held[i], next[i], due[i] = p.state.Last, timeOrNull(p.state.Held), timeOrNull(p.next), timeOrNull(p.due)
		done[i], running[i], keys[i] = p.extraIsDone, nil, orNull(p.runningKey)
		if p.runningKey != "" {
			id := p.running.String()
			running[i] = &id
		}
		text, err := json.Marshal(p.recent)
		if err != nil {
			return err
		}
		recents[i] = string(text)
	}
	return t.send(ctx, func(b *pgx.Batch) {
		b.Queue(t.in(advanceSQL), tenants, names, claims, revisions, last, held, next, due, done, running, keys, recents)
	})
}

func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// timeOrNull is orNull for times, whose zero has several representations.
func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

const readSQL = `SELECT tenant, name, instance, revision, plan::text, paused, last_at, coalesce(next_at, '0001-01-01Z'), held_at IS NOT NULL,
	coalesce(json_array_length(extra), 0), coalesce(recent::text, '[]') FROM {pawl}.schedule `

// List lists the schedules of a tenant by name.
func (t *Table) List(ctx context.Context, f inspect.ScheduleFilter) ([]inspect.Schedule, error) {
	found, _ := t.pool.Query(ctx, t.in(readSQL+`WHERE tenant = $1 AND name > $2 ORDER BY tenant, name LIMIT $3`),
		f.Tenant, f.After, int64(f.Limit)) // CollectRows returns its error
	list, err := pgx.CollectRows(found, readRow)
	if err != nil {
		return nil, store.ReadError("schedules", err)
	}
	return list, nil
}

// Get returns a schedule. Error: NotFound.
func (t *Table) Get(ctx context.Context, tenant, name string) (inspect.Schedule, error) {
	found, _ := t.pool.Query(ctx, t.in(readSQL+`WHERE tenant = $1 AND name = $2`), tenant, name) // CollectRows returns its error
	list, err := pgx.CollectRows(found, readRow)
	switch {
	case err != nil:
		return inspect.Schedule{}, store.ReadError("a schedule", err)
	case len(list) == 0:
		return inspect.Schedule{}, workflow.Errorf(workflow.NotFound, "there is no schedule %q", name)
	}
	return list[0], nil
}

func readRow(r pgx.CollectableRow) (s inspect.Schedule, err error) {
	var plan, recent string
	err = r.Scan(&s.Tenant, &s.Name, &s.Instance, &s.Version, &plan, &s.Paused, &s.Last, &s.Next, &s.Waiting, &s.Extra, &recent)
	if err == nil {
		err = json.Unmarshal([]byte(plan), &s.Plan)
	}
	if err == nil {
		err = json.Unmarshal([]byte(recent), &s.Recent)
	}
	s.Last, s.Next = s.Last.UTC(), s.Next.UTC()
	return s, err
}
