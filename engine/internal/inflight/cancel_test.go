package inflight

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestCancelStopsARunningAttemptHere(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	g := newGated()
	w := job(t, g.work)
	n := startNode(t, pool, w)
	ref := n.accept(t, w, "a")
	await.Receive(t, "it runs", g.begun)
	require.NoError(t, n.Cancel(t.Context(), ref, "bob"))
	cause := await.Receive(t, "its context is done", g.cause)
	assert.Equalf(t, "cancelled by bob", cause.Error(), "its context is done because %v", cause)
	want := workflow.Failure{Kind: workflow.FailureCancelled, Message: "cancelled by bob", Attempts: 1, Unknown: true}
	assert.Equal(t, want, n.failure(t), "it failed as")
	got := read(t, pool, ref)
	assert.Truef(t, got.CancelledBy == "bob" && got.Status == transitions.FailedFinal, "it is %+v", got.Record)
	assert.NoError(t, n.Cancel(t.Context(), ref, "eve"), "one that is finished")
	got = read(t, pool, ref)
	assert.Equal(t, "bob", got.CancelledBy, "it was cancelled by")
}

// afterCommit calls what it is when a COMMIT has been answered.
type afterCommit func()

func (afterCommit) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (f afterCommit) TraceQueryEnd(_ context.Context, _ *pgx.Conn, d pgx.TraceQueryEndData) {
	if d.CommandTag.String() == "COMMIT" {
		f()
	}
}

// The time of the caller is over when it is committed: it is done all the same, and the
// attempt is told at once.
func TestACancelThatIsCommittedIsNotTimedOut(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	ctx, leave := context.WithCancel(t.Context())
	config := pool.Config().Copy()
	config.ConnConfig.Tracer = afterCommit(leave)
	callers, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(callers.Close)
	g := newGated()
	w := job(t, g.work)
	n := startNode(t, pool, w, func(c *Config) { c.Callers, c.Lease = callers, time.Hour })
	ref := n.accept(t, w, "a")
	await.Receive(t, "it runs", g.begun)
	err = n.Cancel(ctx, ref, "bob")
	assert.Truef(t, err == nil && ctx.Err() != nil, "got %v; the caller has left: %v", err, ctx.Err())
	await.Receive(t, "its context is done", g.cause)
}

func TestCancel_OtherNode(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	g := newGated()
	w := job(t, g.work)
	n := startNode(t, pool, w, lease(time.Second), workers(1)) // nobody is there to take over from it
	ref := n.accept(t, w, "a")
	await.Receive(t, "it runs", g.begun)
	other := newNode(t, pool, w)
	require.NoError(t, other.Cancel(t.Context(), ref, "bob"))
	got := n.failure(t)
	assert.Truef(t, got.Kind == workflow.FailureCancelled && got.Message == "cancelled by bob" && got.Unknown, "it failed as %+v", got)
}

func TestCancel_WaitingCommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		row     row
		begun   int
		unknown bool
	}{
		"a first attempt":     {due("a", func(r *row) { r.RunAt = time.Now().Add(time.Hour) }), 0, false},
		"after others":        {due("a", func(r *row) { r.RunAt, r.Attempt, r.Failures = time.Now().Add(time.Hour), 2, 2 }), 2, true},
		"a scheduled command": {due("a", scheduled, func(r *row) { r.RunAt = time.Now().Add(time.Hour) }), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t)
			insert(t, pool, c.row)
			n := startNode(t, pool, job(t, func() work { return newGated().work }()))
			require.NoError(t, n.Cancel(t.Context(), c.row.ref(), "bob"))
			want := workflow.Failure{Kind: workflow.FailureCancelled, Message: "cancelled by bob", Attempts: c.begun, Unknown: c.unknown}
			assert.Equal(t, want, n.failure(t), "it failed as")
		})
	}
}

// The cancellation arrives while the attempt fails: the command does not wait for its retry.
func TestAGiveBackOfACancelledCommandIsDueAtOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	r := due("a", leased("dead", time.Hour), func(r *row) { r.CancelledBy = "bob" })
	insert(t, pool, r)
	n := newNode(t, pool, job(t, atOnce), func(c *Config) { c.Node = "dead" })
	f := &flight{InFlight: *decide.FlightOf(&r.Record, r.Tenant), kept: time.Now()}
	f.CancelledBy = "" // at its claim
	n.held[f.Ref] = f
	n.giveBack(f, decide.Undecidable(errors.New("no")).Back)
	require.True(t, n.write(t.Context(), n.gather(time.Now(), false)), "it was not written")
	got := read(t, pool, r.ref())
	assert.Truef(t, got.Stuck == "" && !got.RunAt.IsZero() && !got.RunAt.After(time.Now()) && got.Status == transitions.FailedRetryable,
		"it is %+v", got.Record)
}

// Waiting for a lock uses a separate connection and ends after a timeout.
func TestACancelDoesNotWaitLongForALock(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	r := due("a", func(r *row) { r.RunAt = time.Now().Add(time.Hour) })
	insert(t, pool, r)
	n := startNode(t, pool, job(t, atOnce), func(c *Config) { c.Callers = pool })
	n.lockWait = lockWait
	lock(t, pool, r.ref())
	err := n.Cancel(t.Context(), r.ref(), "bob")
	assert.Equalf(t, workflow.Locked, workflow.CodeOf(err), "one whose row is locked: %v", err)
	assert.Equal(t, 0, n.asked.Count("WITH asked"), "it waited on a connection of the leases")
}

func TestCancelRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	undo := due("undo", func(r *row) { r.Phase, r.RunAt = transitions.Undoing, time.Now().Add(time.Hour) })
	locked := due("locked", func(r *row) { r.RunAt = time.Now().Add(time.Hour) })
	insert(t, pool, undo, locked)
	n := startNode(t, pool, job(t, atOnce))
	err := n.Cancel(t.Context(), undo.ref(), "bob")
	assert.Equalf(t, workflow.InvalidRequest, workflow.CodeOf(err), "an undo: %v", err)
	got := read(t, pool, undo.ref())
	assert.Equal(t, "", got.CancelledBy, "the undo was cancelled")
	err = n.Cancel(t.Context(), transitions.Ref{Tenant: "acme", Scope: "s", Key: "k"}, "bob")
	assert.Equalf(t, workflow.CommandNotFound, workflow.CodeOf(err), "an unknown command: %v", err)
	err = n.Cancel(t.Context(), transitions.Ref{Tenant: "other", Scope: locked.Scope, Key: locked.Key}, "bob")
	assert.Equalf(t, workflow.CommandNotFound, workflow.CodeOf(err), "another tenant's command: %v", err)
	unlock := lock(t, pool, locked.ref())
	done := make(chan error, 1)
	go func() { done <- n.Cancel(t.Context(), locked.ref(), "bob") }()
	pgtest.WaitBlocked(t, pool, "WITH asked")
	unlock()
	assert.NoError(t, await.Receive(t, "it is cancelled", done))
}
