package inflight

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// row is a command as the tests write and read it.
type row struct {
	transitions.Record
	Tenant string
}

func (r row) ref() transitions.Ref {
	return transitions.Ref{Tenant: r.Tenant, Scope: r.Scope, Key: r.Key}
}

// due is the row of an activity that waits for a worker. change, where given,
// edits it.
func due(key string, change ...func(*row)) row {
	r := row{Tenant: "acme", Record: transitions.Record{Scope: "job:1", Key: key, Status: transitions.Pending, Phase: transitions.Working,
		Workflow: "job", Transition: "run", Instance: uuid.NewSHA1(uuid.Nil, []byte(key)), Actor: "ann", RunAt: time.Now().Add(-time.Millisecond),
		Request: []byte(`{"payload":{"text":"` + key + `"}}`)}}
	for _, f := range change {
		f(&r)
	}
	return r
}

// scheduled makes it a command for later.
func scheduled(r *row) {
	r.Phase, r.Transition = transitions.Scheduled, "expire"
	r.Request = []byte(`{"payload":{},"roles":["*"]}`)
}

// leased makes it one that another node works on for a while still, or whose
// lease has run out.
func leased(by string, left time.Duration) func(*row) {
	return func(r *row) {
		r.Status, r.RunAt, r.ClaimedBy, r.LockedUntil, r.Attempt = transitions.Processing, time.Time{}, by, time.Now().Add(left), r.Attempt+1
	}
}

const insertSQL = `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, phase, workflow, transition, instance, actor, request,
	attempt, failures, revision, run_at, claimed_by, claimed_at, locked_until, cancelled_by, created_at, updated_at)
	VALUES ($1, $2, $3, decode(repeat('00', 32), 'hex'), $4, $5, $6, $7, $8, $9, $10, $11, $12, 1, $13, $14, $15, $15, $16, now(), now())`

// insert stores rows, and for each an instance in the in-between state.
func insert(t testing.TB, pool *pgxpool.Pool, rows ...row) {
	t.Helper()
	var b pgx.Batch
	for _, r := range rows {
		b.Queue(insertSQL, r.Tenant, r.Scope, r.Key, r.Status, r.Phase, r.Workflow, r.Transition, r.Instance, r.Actor, string(r.Request),
			r.Attempt, r.Failures, timeOrNull(r.RunAt), orNull(r.ClaimedBy), timeOrNull(r.LockedUntil), orNull(r.CancelledBy))
		b.Queue(`INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
			VALUES ($1, $2, $3, 1, 'running', 1, '{"text":"data"}', true, decode(repeat('00', 32), 'hex'), now(), now()) ON CONFLICT DO NOTHING`,
			r.Tenant, r.Instance, r.Workflow)
	}
	require.NoError(t, pool.SendBatch(t.Context(), &b).Close())
}

func timeOrNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// read reads a row back.
func read(t testing.TB, pool *pgxpool.Pool, ref transitions.Ref) row {
	t.Helper()
	r := row{Tenant: ref.Tenant}
	r.Scope, r.Key = ref.Scope, ref.Key
	var claimedAt, lockedUntil, runAt *time.Time
	err := pool.QueryRow(t.Context(), `SELECT status, coalesce(phase, ''), attempt, failures, revision, coalesce(claimed_by, ''), claimed_at,
		locked_until,
		run_at, coalesce(progress::text, ''), coalesce(failure, ''), coalesce(stuck, ''), coalesce(cancelled_by, '')
		FROM pawl.command WHERE tenant = $1 AND scope = $2 AND key = $3`, ref.Tenant, ref.Scope, ref.Key).
		Scan(&r.Status, &r.Phase, &r.Attempt, &r.Failures, &r.Revision, &r.ClaimedBy, &claimedAt, &lockedUntil, &runAt, &r.Progress, &r.Failure,
			&r.Stuck, &r.CancelledBy)
	require.NoError(t, err)
	for to, from := range map[*time.Time]*time.Time{&r.ClaimedAt: claimedAt, &r.LockedUntil: lockedUntil, &r.RunAt: runAt} {
		if from != nil {
			*to = *from
		}
	}
	return r
}

// becomes waits until the row is as it should be.
func becomes(t testing.TB, pool *pgxpool.Pool, ref transitions.Ref, what string, met func(row) bool) row {
	t.Helper()
	var r row
	eventually(t, what, func() bool { r = read(t, pool, ref); return met(r) })
	return r
}

// accept does what the pipeline does where a command is accepted by a node that
// has a free worker: a row that is leased from the beginning, and word of it.
func (n *node) accept(t testing.TB, w *workflow.Workflow, key string) transitions.Ref {
	t.Helper()
	step := w.Named("run")[0]
	require.True(t, n.Reserve(w.Name, step), "no worker is free")
	r := due(key, leased(n.name, n.config.Lease))
	insert(t, n.pool, r)
	n.Updated([]decide.FlightUpdate{r.landed(w)})
	return r.ref()
}

// landed is the word of a row that its node has leased.
func (r row) landed(w *workflow.Workflow) decide.FlightUpdate {
	f := decide.FlightOf(&r.Record, r.Tenant)
	f.Definition, f.Data = w.Version, []byte(`{"text":"data"}`)
	return decide.FlightUpdate{InFlight: *f, Status: r.Status, Leased: true, Since: time.Now()}
}

func exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// lock locks a command's row until the returned function is called.
func lock(t testing.TB, pool *pgxpool.Pool, ref transitions.Ref) (unlock func()) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT 1 FROM pawl.command WHERE tenant = $1 AND scope = $2 AND key = $3 FOR UPDATE`,
		ref.Tenant, ref.Scope, ref.Key)
	require.NoError(t, err)
	unlock = func() { _ = tx.Rollback(t.Context()) } // after the first time there is nothing to do
	t.Cleanup(unlock)
	return unlock
}

// orNull is nil for "".
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
