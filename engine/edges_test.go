package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Where things that are each simple meet: children, hooks, callers' transactions,
// timers, activities, commands that leave.

func keep(*workflow.Call, *struct{}, workflow.None) error { return nil }

// kid is what the workflow mum starts, n at once.
var kid = workflow.Define("kid", 1,
	workflow.Start("born", "alive", keep), workflow.On("die", workflow.From("alive"), "dead", keep)).Final("dead")

func mum(n int) *workflow.Transition[struct{}, workflow.None] {
	return workflow.On("bear", workflow.From("open"), workflow.Stay, func(c *workflow.Call, _ *struct{}, _ workflow.None) error {
		for range n {
			c.Spawn(workflow.Child{Workflow: "kid", Transition: "born"})
		}
		return nil
	})
}

func mother(bear workflow.Part[struct{}]) *workflow.Definition[struct{}] {
	return workflow.Define("mum", 1, workflow.Start("open", "open", keep), bear,
		workflow.On("close", workflow.From("open"), "closed", keep)).Final("closed")
}

func flows(ws ...workflow.Source) func(*engine.Config) {
	return func(c *engine.Config) { c.Workflows = ws }
}

// sound fails the test unless every chain and the log verify, and every
// transition has its event at its position.
func sound(t *testing.T, e *engine.Engine, pool *pgxpool.Pool) {
	t.Helper()
	v, err := e.Admin().Verify(t.Context(), "", [16]byte{})
	assert.Truef(t, err == nil && len(v.Broken) == 0, "%+v, %v", v, err)
	n := query[int](t, pool, `SELECT count(*)::int FROM pawl.audit a FULL JOIN (SELECT * FROM pawl.outbox WHERE ordinal = 0) o
		ON o.tenant = a.tenant AND o.position = a.position AND o.instance = a.instance AND o.version = a.version
		WHERE o.position IS NULL OR a.position IS NULL`)
	assert.Truef(t, n <= 0, "%d transitions and events without each other", n)
}

func TestChildrenInACallersTransaction(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			pool := database(t)
			e := newEngine(t, pool, flows(kid, mother(mum(n))))
			r := submit(t, e, transitions.Command{Workflow: "mum", Transition: "open", Key: "1"})
			err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				r, err := e.SubmitTx(t.Context(), tx, transitions.Command{Workflow: "mum", Transition: "bear", Key: "2", Instance: r.Instance})
				if err == nil {
					err = r.Err()
				}
				return err
			})
			require.NoError(t, err)
			assert.Equal(t, n, query[int](t, pool, "SELECT count(*)::int FROM pawl.audit WHERE workflow = 'kid' AND position > 2"),
				"children")
			sound(t, e, pool)
		})
	}
}

func TestARefusingHookLeavesNoChildren(t *testing.T) {
	t.Parallel()
	pool := database(t)
	refusing := func(context.Context, pgx.Tx, struct{}, workflow.None) error { return workflow.Refuse("no") }
	e := newEngine(t, pool, flows(kid, mother(engine.InTx(mum(2), refusing))))
	r := submit(t, e, transitions.Command{Workflow: "mum", Transition: "open", Key: "1"})
	refused, err := e.Submit(t.Context(), transitions.Command{Workflow: "mum", Transition: "bear", Key: "2", Instance: r.Instance})
	assert.Truef(t, err == nil && refused.Refused(), "%+v, %v", refused, err)
	assert.Equal(t, 0, query[int](t, pool, "SELECT count(*)::int FROM pawl.instance WHERE workflow = 'kid'"),
		"children of a refused command")
	sound(t, e, pool)
}

// skipping is a clock that goes, and can be set forward.
type skipping struct{ by atomic.Int64 }

func (s *skipping) config(c *engine.Config) {
	c.Now = func() time.Time { return time.Now().Add(time.Duration(s.by.Load())) }
}

// The row of a timer becomes that of the activity that it begins. Leaving the
// timer's states must not take it away then: its effect has to be undone.
func TestTimerActivity_OutlivesTimer(t *testing.T) {
	t.Parallel()
	pool := database(t)
	clock := &skipping{}
	running, finish := make(chan bool), make(chan bool)
	undone := make(chan bool, 10)
	e := newEngine(t, pool, clock.config, flows(workflow.Define("auto", 1, workflow.Start("open", "waiting", keep),
		workflow.Do("charge", workflow.From("waiting"), "charging", "paid",
			func(context.Context, *workflow.Attempt, struct{}, workflow.None) (int, error) {
				running <- true
				<-finish // the charge happens, whatever is asked meanwhile
				return 1, nil
			}, func(*workflow.Call, *struct{}, int) error { return nil }).
			OrElse("failed", func(*workflow.Call, *struct{}, workflow.Failure) error { return nil }).
			Undo(func(context.Context, *workflow.Attempt, struct{}, workflow.None, *int) error {
				undone <- true
				return nil
			}),
		workflow.On("back", workflow.From("charging"), "waiting", keep),
		workflow.On("cash", workflow.From("waiting"), "cashed", keep),
	).Final("paid", "failed", "cashed").After("auto", workflow.From("waiting"), time.Hour, "charge")))
	r := submit(t, e, transitions.Command{Workflow: "auto", Transition: "open", Key: "1"})
	clock.by.Store(int64(61 * time.Minute))
	<-running
	submit(t, e, transitions.Command{Workflow: "auto", Transition: "back", Key: "2", Instance: r.Instance})
	submit(t, e, transitions.Command{Workflow: "auto", Transition: "cash", Key: "3", Instance: r.Instance})
	close(finish)
	await.Receive(t, "the charge happened, and is undone", undone)
}

// A reminder and an expiry are overdue together, as after downtime: in one group one fires without leaving the state and the other leaves
// it. Other commands are not affected.
func TestOverdueTimersOfOneInstanceFireInOneGroup(t *testing.T) {
	t.Parallel()
	pool := database(t)
	clock := &skipping{}
	w := workflow.Define("rem", 1, workflow.Start("open", "waiting", keep),
		workflow.On("remind", workflow.From("waiting"), workflow.Stay, keep),
		workflow.On("expire", workflow.From("waiting"), "expired", keep),
	).Final("expired").
		After("reminder", workflow.From("waiting"), time.Hour, "remind").
		After("expiry", workflow.From("waiting"), 2*time.Hour, "expire")
	e := newEngine(t, pool, clock.config, flows(w))
	const instances = 50
	for n := range instances {
		submit(t, e, transitions.Command{Workflow: "rem", Transition: "open", Key: fmt.Sprint(n)})
	}
	clock.by.Store(int64(3 * time.Hour))
	eventually(t, "all have expired", func() bool {
		return query[int](t, pool, "SELECT count(*)::int FROM pawl.instance WHERE state = 'expired'") == instances
	})
	n := query[int](t, pool, "SELECT coalesce(sum(failures), 0)::int FROM pawl.command")
	assert.Truef(t, n <= 0, "%d attempts failed on the way", n)
	sound(t, e, pool)
}

func TestCancelled_Duplicate(t *testing.T) {
	t.Parallel()
	release := make(chan bool)
	e := newEngine(t, database(t), with(workflow.Define("parcel", 1,
		workflow.Start("pack", "packed", func(*workflow.Call, *parcel, workflow.None) error { return nil }),
		workflow.Do("send", workflow.From("packed"), "sending", "sent",
			func(context.Context, *workflow.Attempt, parcel, workflow.None) (track, error) {
				<-release
				return track{}, nil
			}, func(*workflow.Call, *parcel, track) error { return nil }).
			OrElse("packed", func(*workflow.Call, *parcel, workflow.Failure) error { return nil }),
		workflow.On("burn", workflow.From("sending"), "burnt", func(*workflow.Call, *parcel, workflow.None) error { return nil }),
	).Final("sent", "burnt")))
	r := submit(t, e, transitions.Command{Workflow: "parcel", Transition: "pack", Key: "1"})
	send := transitions.Command{Workflow: "parcel", Transition: "send", Key: "2", Instance: r.Instance}
	accepted := submit(t, e, send)
	submit(t, e, transitions.Command{Workflow: "parcel", Transition: "burn", Key: "3", Instance: r.Instance})
	close(release)
	awaited, err := e.Await(t.Context(), transitions.Ref{Scope: accepted.Record.Scope, Key: "2"})
	require.NoError(t, err)
	wantCode(t, awaited.Err(), workflow.CommandCancelled)
	again, err := e.Submit(t.Context(), send)
	if err != nil || string(again.Body) != string(awaited.Body) || again.Version != awaited.Version || again.Position != awaited.Position {
		t.Errorf("the duplicate got %+v, %v\nthe awaited answer is %+v", again, err, awaited)
	}
}
