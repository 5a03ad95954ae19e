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
			pool, e := started(t, flows(kid, mother(mum(n))))
			r := submit(t, e, transitions.Command{Workflow: "mum", Transition: "open", Key: "1"})
			err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				r, err := e.SubmitTx(t.Context(), tx, transitions.Command{Workflow: "mum", Transition: "bear", Key: "2", Instance: r.Instance})
				if err == nil {
					err = r.Err()
				}
				return err
			})
			require.NoError(t, err)
			assert.Equal(t, n, query[int](t, pool, "SELECT count(*)::int FROM pawl.audit WHERE workflow = 'kid' AND position > 2"), "children")
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
	assert.Equal(t, 0, query[int](t, pool, "SELECT count(*)::int FROM pawl.instance WHERE workflow = 'kid'"), "children of a refused command")
	sound(t, e, pool)
}

// skipping is a clock that goes, and can be set forward.
type skipping struct{ by atomic.Int64 }

func (s *skipping) config(c *engine.Config) {
	c.Now = func() time.Time { return time.Now().Add(time.Duration(s.by.Load())) }
}

func TestCancelled_Duplicate(t *testing.T) {
	t.Parallel()
	release := make(chan bool)
	e := newEngine(t, database(t), with(workflow.Define("parcel", 1,
		workflow.Start("pack", "packed", nothing[parcel, workflow.None]),
		workflow.Do("send", workflow.From("packed"), "sending", "sent",
			func(context.Context, *workflow.Attempt, parcel, workflow.None) (track, error) {
				<-release
				return track{}, nil
			}, nothing[parcel, track]).OrElse("packed", nothing[parcel, workflow.Failure]),
		workflow.On("burn", workflow.From("sending"), "burnt", nothing[parcel, workflow.None]),
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
	assert.Truef(t, err == nil && string(again.Body) == string(awaited.Body) && again.Version == awaited.Version &&
		again.Position == awaited.Position, "the duplicate got %+v, %v\nthe awaited answer is %+v", again, err, awaited)
}
