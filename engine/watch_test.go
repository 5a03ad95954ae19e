package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// collecting is a part of the loans that takes time: it reports, and is done
// when it is let go.
func collecting(goOn <-chan struct{}) workflow.Part[loan] {
	return workflow.Do("collect", workflow.From("open"), "collecting", "open",
		func(ctx context.Context, a *workflow.Attempt, d loan, p payment) (int, error) {
			if err := a.Report(map[string]string{"sent": "to the debtor"}); err != nil {
				return 0, err
			}
			select {
			case <-goOn:
				return p.Amount, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}, func(c *workflow.Call, d *loan, collected int) error {
			d.Owed -= collected
			return nil
		}).OrElse("open", nothing[loan, workflow.Failure])
}

// Watchers on two nodes see the command until its end, even without notifications.
func TestACommandIsWatchedToItsEndFromEveryNode(t *testing.T) {
	t.Parallel()
	for _, quiet := range []bool{false, true} {
		t.Run(fmt.Sprintf("PollOnly %v", quiet), func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			goOn := make(chan struct{})
			change := func(c *engine.Config) {
				c.Workflows, c.PollOnly = []workflow.Source{loans(1, collecting(goOn))}, quiet
			}
			here, there := newEngine(t, pool, change), newEngine(t, pool, change)
			submit(t, here, applied("L-1", 100))
			receipt := submit(t, here, on("collect", "L-1", "c", 100, ""))
			require.Truef(t, receipt.InFlight() && receipt.Record != nil, "got %+v, which is not in flight", receipt)
			scope := receipt.Record.Scope
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			type reply struct {
				receipt transitions.Receipt
				err     error
			}
			awaited := make(chan reply, 2)
			for _, e := range []*engine.Engine{here, there} {
				go func() {
					r, err := e.Await(ctx, transitions.Ref{Scope: scope, Key: "c"})
					awaited <- reply{r, err}
				}()
			}
			ref := transitions.Ref{Scope: scope, Key: "c"}
			watchers := []transitions.Watcher{here.Read().Watch(ref), there.Read().Watch(ref)}
			for _, w := range watchers {
				defer w.Close()
				for { // until it is seen at work
					r, err := w.Next(ctx)
					require.NoError(t, err)
					if r.Status == transitions.Processing && string(r.Progress) == `{"sent":"to the debtor"}` {
						assert.Truef(t, r.Attempt == 1 && r.ClaimedBy != "" && !r.LockedUntil.IsZero() && r.InFlight(), "got %+v", r)
						break
					}
				}
			}
			close(goOn)
			var body string
			for _, w := range watchers {
				r, err := w.Next(ctx)
				for err == nil && r.InFlight() {
					r, err = w.Next(ctx)
				}
				require.Truef(t, err == nil && r.Status == transitions.Succeeded && r.Code == 200 && !r.FinishedAt.IsZero(), "got %+v, %v", r, err)
				body = string(transitions.WithPosition(r.Body, r.Position))
			}
			for range cap(awaited) {
				got := <-awaited
				assert.Truef(t, got.err == nil && got.receipt.Status == 200 && got.receipt.Replayed && string(got.receipt.Body) == body,
					"got %+v, %v; want %s", got.receipt, got.err, body)
			}
			again := submit(t, there, on("collect", "L-1", "c", 100, ""))
			assert.Equalf(t, body, string(again.Body), "a duplicate gets %s, who waited", again.Body)
		})
	}
}

// Every column of a command in flight, as Command and Watch show it.
func TestARecordHasEverythingThatIsStored(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	id, at := uuid.New(), time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	day := func(n int) time.Time { return at.AddDate(0, 0, n) }
	exec(t, pool, `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, version, actor,
		created_at,
			phase, attempt, failures, revision, claimed_by, claimed_at, request, progress, failure, stuck, cancelled_by, updated_at)
		VALUES ('default', 's', 'k', sha256('x'), 'failed_retryable', 'loan', 'collect', $1, 3, 'ann', $2,
			'working', 4, 2, 9, 'node-1', $3, '{"payload":{"amount":1}}', '{"sent": true}', 'no answer', 'unknown_outcome', 'bob', $4)`,
		id, at, day(1), day(2))
	want := transitions.Record{Scope: "s", Key: "k", Status: transitions.FailedRetryable, Workflow: "loan", Transition: "collect",
		Instance: id, Version: 3, Actor: "ann", CreatedAt: at, UpdatedAt: day(2), Phase: transitions.Working, Attempt: 4, Failures: 2,
		Revision: 9, ClaimedBy: "node-1", ClaimedAt: day(1), Request: []byte(`{"payload":{"amount":1}}`), Progress: []byte(`{"sent": true}`),
		Failure: "no answer", Stuck: "unknown_outcome", CancelledBy: "bob"}
	got, err := e.Read().Command(t.Context(), transitions.Ref{Scope: "s", Key: "k"})
	require.NoError(t, err)
	want.Fingerprint = got.Fingerprint
	assert.Equal(t, want, got, "Command: got\n, want")
	w := e.Read().Watch(transitions.Ref{Scope: "s", Key: "k"})
	defer w.Close()
	got, err = w.Next(t.Context())
	require.NoError(t, err)
	want.Request = nil
	assert.Equal(t, want, got, "Watch: got\n, want")
}

func TestWatch_UnknownNames(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t))
	long := strings.Repeat("x", 300)
	for _, ref := range []transitions.Ref{
		{Scope: "s", Key: "k"}, {Scope: "", Key: "k"}, {Scope: "s", Key: ""}, {Tenant: "a\x00b", Scope: "s", Key: "k"},
		{Scope: "a\x00b", Key: "k"}, {Scope: "s", Key: "\xff"}, {Tenant: long, Scope: "s", Key: "k"}, {Scope: long, Key: "k"},
		{Scope: "s", Key: long},
	} {
		wantCode(t, errOf(e.Read().Command(t.Context(), ref)), workflow.CommandNotFound)
		wantCode(t, errOf(e.Await(t.Context(), ref)), workflow.CommandNotFound)
		w := e.Read().Watch(ref)
		wantCode(t, errOf(w.Next(t.Context())), workflow.CommandNotFound)
		w.Close()
	}
}
