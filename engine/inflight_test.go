package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// parcel is a workflow whose activity does what a test says.
type parcel struct {
	Tracking string `json:"tracking,omitempty"`
}

type track struct {
	Number string `json:"number"`
}

func parcels(send func(ctx context.Context, a *workflow.Attempt) (track, error)) *workflow.Definition[parcel] {
	return workflow.Define("parcel", 1,
		workflow.Start("pack", "packed", func(*workflow.Call, *parcel, workflow.None) error { return nil }),
		workflow.Do("send", workflow.From("packed", "returned"), "sending", "sent",
			func(ctx context.Context, a *workflow.Attempt, _ parcel, _ workflow.None) (track, error) {
				return send(ctx, a)
			},
			func(_ *workflow.Call, p *parcel, t track) error {
				p.Tracking = t.Number
				return nil
			}).
			OrElse("returned", func(*workflow.Call, *parcel, workflow.Failure) error { return nil }).
			Retry(workflow.Retry{Attempts: 3, First: time.Millisecond}),
	).Final("sent")
}

// with gives an engine a workflow.
func with(w workflow.Source) func(*engine.Config) {
	return func(c *engine.Config) { c.Workflows = []workflow.Source{w} }
}

// The outcome of the first attempt is unknown, and an operator retries it. A second attempt without an effect does not prove that the first
// had none: it is undone.
func TestRetry_UndoesEarlierAttempt(t *testing.T) {
	t.Parallel()
	var attempts atomic.Int64
	undone := make(chan string, 10)
	w := workflow.Define("parcel", 1,
		workflow.Start("pack", "packed", func(*workflow.Call, *parcel, workflow.None) error { return nil }),
		workflow.Do("send", workflow.From("packed"), "sending", "sent",
			func(context.Context, *workflow.Attempt, parcel, workflow.None) (track, error) {
				if attempts.Add(1) == 1 {
					return track{}, errors.New("the connection was lost")
				}
				return track{}, workflow.Final(errors.New("no such address"))
			},
			func(*workflow.Call, *parcel, track) error { return nil }).
			OrElse("packed", func(*workflow.Call, *parcel, workflow.Failure) error { return nil }).
			AskOperator().
			Undo(func(_ context.Context, a *workflow.Attempt, _ parcel, _ workflow.None, result *track) error {
				if result != nil {
					return errors.New("there is a result")
				}
				undone <- a.Key
				return nil
			}),
	).Final("sent")
	e := newEngine(t, database(t), with(w))
	r, err := e.Submit(t.Context(), transitions.Command{Workflow: "parcel", Transition: "pack", Key: "1"})
	require.NoError(t, err)
	accepted, err := e.Submit(t.Context(), transitions.Command{Workflow: "parcel", Transition: "send", Key: "2", Instance: r.Instance})
	require.Truef(t, err == nil && accepted.InFlight(), "%+v, %v", accepted, err)
	scope := accepted.Record.Scope
	eventually(t, "it waits for an operator", func() bool {
		c, err := e.Read().Command(t.Context(), transitions.Ref{Scope: scope, Key: "2"})
		return err == nil && c.Stuck == transitions.StuckUnknown
	})
	o := transitions.Operation{Action: transitions.Retry, Target: transitions.CommandRef{Scope: scope, Key: "2"}}
	if r, err := e.Admin().Operate(t.Context(), transitions.Command{Key: "op", Actor: "ann"}, o); err != nil || r.Refused() {
		t.Fatalf("%+v, %v", r, err)
	}
	end, err := e.Await(t.Context(), transitions.Ref{Scope: scope, Key: "2"})
	assert.Truef(t, err == nil && end.Status == 409, "%+v, %v", end, err)
	assert.Equal(t, transitions.EffectKey(transitions.Ref{Tenant: transitions.DefaultTenant,
		Scope: scope, Key: "2"}), await.Receive(t, "it is undone", undone), "undone")
	assert.Equal(t, int64(2), attempts.Load(), "attempts")
}

func TestAnActivityIsDoneAndItsEndAwaited(t *testing.T) {
	t.Parallel()
	var attempts atomic.Int64
	e := newEngine(t, database(t), with(parcels(func(_ context.Context, a *workflow.Attempt) (track, error) {
		if attempts.Add(1) == 1 {
			return track{}, errors.New("no van today")
		}
		return track{Number: a.Key[:8]}, nil
	})))
	r, err := e.Submit(t.Context(), transitions.Command{Workflow: "parcel", Transition: "pack", Key: "1"})
	require.NoError(t, err)
	send := transitions.Command{Workflow: "parcel", Transition: "send", Key: "2", Instance: r.Instance}
	accepted, err := e.Submit(t.Context(), send)
	require.Truef(t, err == nil && accepted.InFlight(), "%+v, %v", accepted, err)
	done, err := e.Await(t.Context(), transitions.Ref{Scope: accepted.Record.Scope, Key: "2"})
	require.NoError(t, err)
	result, err := done.Result()
	assert.Truef(t, err == nil && result.State == "sent" && attempts.Load() == 2,
		"%+v, %v after %d attempts", result, err, attempts.Load())
	again, err := e.Submit(t.Context(), send)
	assert.Truef(t, err == nil && again.Replayed && string(again.Body) == string(done.Body),
		"the duplicate got %+v, %v; want %s", again, err, done.Body)
}

// The lease is long, so that no heartbeat comes in time: the notification stops the attempt. One may be lost if no node listens yet or the
// machine is busy.
func TestACancelOnAnotherNodeStopsTheAttemptAtOnce(t *testing.T) {
	t.Parallel()
	pool := database(t)
	begun := make(chan bool, 10)
	send := func(ctx context.Context, _ *workflow.Attempt) (track, error) {
		begun <- true
		<-ctx.Done()
		return track{}, ctx.Err()
	}
	long := func(c *engine.Config) { c.InFlight.Lease = time.Hour }
	works := newEngine(t, pool, with(parcels(send)), long)
	asks := newEngine(t, pool, with(parcels(send)), long, func(c *engine.Config) { c.InFlight.Workers = -1 })
	for try := range 5 {
		r := submit(t, works, transitions.Command{Workflow: "parcel", Transition: "pack", Key: fmt.Sprint("pack ", try)})
		accepted := submit(t, works, transitions.Command{Workflow: "parcel", Transition: "send", Key: "send", Instance: r.Instance})
		<-begun
		if _, err := asks.Cancel(t.Context(), transitions.Ref{Scope: accepted.Record.Scope, Key: "send"}, "ann"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		done, err := asks.Await(ctx, transitions.Ref{Scope: accepted.Record.Scope, Key: "send"})
		cancel()
		if err == nil {
			wantCode(t, done.Err(), workflow.CommandCancelled)
			return
		}
		wantCode(t, err, workflow.TimedOut)
	}
	t.Error("the hint is never heard")
}

// Claims, give-backs and cancels are durable when they are answered, and no row
// that another node has just changed is an error, whatever the database's
// defaults are.
func TestSubmitTx_InFlightColumns(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database());
		EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database());
	END $$`)
	pool.Reset()
	exec(t, pool, "CREATE TABLE seen (by text, settings text)")
	exec(t, pool, `CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO seen VALUES (CASE WHEN OLD.cancelled_by IS NULL
			AND NEW.cancelled_by IS NOT NULL THEN 'cancel' -- by whoever a pooler says it is
			WHEN current_setting('application_name') = 'pawl in flight' THEN 'lease' ELSE 'pipeline' END,
			current_setting('synchronous_commit') || ', ' || current_setting('transaction_isolation'));
		RETURN NULL; END $$`)
	exec(t, pool, "CREATE TRIGGER see AFTER UPDATE ON pawl.command FOR EACH ROW EXECUTE FUNCTION see()")
	e := newEngine(t, pool, with(parcels(func(_ context.Context, a *workflow.Attempt) (track, error) {
		if a.Number == 1 {
			return track{}, errors.New("no van today")
		}
		return track{Number: "1"}, nil
	})))
	r := submit(t, e, transitions.Command{Workflow: "parcel", Transition: "pack", Key: "1"})
	send := transitions.Command{Workflow: "parcel", Transition: "send", Key: "2", Instance: r.Instance,
		Options: transitions.Options{NotBefore: time.Now().Add(time.Hour)}}
	later := submit(t, e, send)
	_, err := e.Cancel(t.Context(), transitions.Ref{Scope: later.Record.Scope, Key: "2"}, "ann")
	require.NoError(t, err)
	send.Key, send.NotBefore = "3", time.Time{}
	accepted := submit(t, e, send)
	_, err = e.Await(t.Context(), transitions.Ref{Scope: accepted.Record.Scope, Key: "3"})
	require.NoError(t, err)
	if got,
		want := query[string](t, pool, "SELECT string_agg(DISTINCT by || ': ' || settings, '; ' ORDER BY by || ': ' || settings) FROM seen"),
		"cancel: on, read committed; lease: on, read committed; pipeline: on, read committed"; got != want {
		t.Errorf("they were written with %s", got)
	}
}

// It was scheduled, and cancelled after it was decided: an attempt was counted, but
// none began.
func TestCancelBeforeStart_NoUndo(t *testing.T) {
	t.Parallel()
	pool := database(t)
	var done, undone atomic.Int64
	w := workflow.Define("parcel", 1,
		workflow.Start("pack", "packed", func(*workflow.Call, *parcel, workflow.None) error { return nil }),
		workflow.Do("send", workflow.From("packed"), "sending", "sent",
			func(context.Context, *workflow.Attempt, parcel, workflow.None) (track, error) {
				done.Add(1)
				return track{}, nil
			},
			func(*workflow.Call, *parcel, track) error { return nil }).
			OrElse("packed", func(*workflow.Call, *parcel, workflow.Failure) error { return nil }).
			Undo(func(context.Context, *workflow.Attempt, parcel, workflow.None, *track) error {
				undone.Add(1)
				return nil
			}),
	).Final("sent")
	accepts := newEngine(t, pool, with(w), func(c *engine.Config) { c.InFlight.Workers = -1 })
	packed := submit(t, accepts, transitions.Command{Workflow: "parcel", Transition: "pack", Key: "1"})
	later := submit(t, accepts, transitions.Command{Workflow: "parcel", Transition: "send", Key: "2", Instance: packed.Instance,
		Options: transitions.Options{NotBefore: time.Now().Add(300 * time.Millisecond)}})
	eventually(t, "it is decided, and waits for a worker", func() bool {
		c, err := accepts.Read().Command(t.Context(), transitions.Ref{Scope: later.Record.Scope, Key: "2"})
		return err == nil && c.Phase == transitions.Working
	})
	if _, err := accepts.Cancel(t.Context(), transitions.Ref{Scope: later.Record.Scope, Key: "2"}, "ann"); err != nil {
		t.Fatal(err)
	}
	works := newEngine(t, pool, with(w))
	end, err := works.Await(t.Context(), transitions.Ref{Scope: later.Record.Scope, Key: "2"})
	require.Truef(t, err == nil && end.Refused(), "it ended with %+v, %v", end, err)
	eventually(t, "nothing is in flight", func() bool {
		return query[int](t, pool, "SELECT count(*) FROM pawl.command WHERE phase IS NOT NULL") == 0
	})
	assert.Truef(t, done.Load() == 0 && undone.Load() == 0, "it was done %d times, and undone %d times", done.Load(), undone.Load())
}
