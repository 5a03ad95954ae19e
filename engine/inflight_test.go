package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
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
		workflow.Start("pack", "packed", nothing[parcel, workflow.None]),
		workflow.Do("send", workflow.From("packed", "returned"), "sending", "sent",
			func(ctx context.Context, a *workflow.Attempt, _ parcel, _ workflow.None) (track, error) {
				return send(ctx, a)
			}, func(_ *workflow.Call, p *parcel, t track) error {
				p.Tracking = t.Number
				return nil
			}).OrElse("returned", nothing[parcel, workflow.Failure]).Retry(workflow.Retry{Attempts: 3, First: time.Millisecond}),
	).Final("sent")
}

// with gives an engine a workflow.
func with(w workflow.Source) func(*engine.Config) {
	return func(c *engine.Config) { c.Workflows = []workflow.Source{w} }
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
		_, err := asks.Cancel(t.Context(), transitions.Ref{Scope: accepted.Record.Scope, Key: "send"}, "ann")
		require.NoError(t, err)
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
	require.NoError(t, errOf(e.Cancel(t.Context(), transitions.Ref{Scope: later.Record.Scope, Key: "2"}, "ann")))
	send.Key, send.NotBefore = "3", time.Time{}
	accepted := submit(t, e, send)
	require.NoError(t, errOf(e.Await(t.Context(), transitions.Ref{Scope: accepted.Record.Scope, Key: "3"})))
	if got,
		want := query[string](t, pool, "SELECT string_agg(DISTINCT by || ': ' || settings, '; ' ORDER BY by || ': ' || settings) FROM seen"),
		"cancel: on, read committed; lease: on, read committed; pipeline: on, read committed"; got != want {
		t.Errorf("they were written with %s", got)
	}
}
