package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type number struct {
	Number string `json:"number"`
}

// fares is a workflow with business keys whose undo fails, and whose last activity has no check.
func fares() *workflow.Definition[struct{}] {
	failed := nothing[struct{}, workflow.Failure]
	return workflow.Define("fare", 1,
		workflow.Start("board", "aboard", nothing[struct{}, number]).BusinessKey(func(n number) string { return n.Number }),
		workflow.Do("charge", workflow.From("aboard"), "charging", "charged",
			func(context.Context, *workflow.Attempt, struct{}, workflow.None) (int, error) { return 1, nil }, nothing[struct{}, int]).
			OrElse("aboard", failed).Undo(func(context.Context, *workflow.Attempt, struct{}, workflow.None, *int) error {
			return workflow.Final(errors.New("no refund"))
		}),
		workflow.Do("ride", workflow.From("charged"), "riding", "arrived",
			func(context.Context, *workflow.Attempt, struct{}, workflow.None) (int, error) {
				return 0, workflow.Final(errors.New("broken down"))
			}, nothing[struct{}, int]).OrElse("stranded", failed).Undoes("charge"),
		workflow.Do("claim", workflow.From("stranded"), "claiming", "settled",
			func(context.Context, *workflow.Attempt, struct{}, workflow.None) (int, error) {
				return 0, errors.New("no answer")
			}, nothing[struct{}, int]).OrElse("stranded", failed).AskOperator(),
		workflow.On("forgive", workflow.From("stranded"), "settled", keep),
	).Final("arrived", "settled")
}

func fare(transition, key string) transitions.Command {
	return transitions.Command{Workflow: "fare", Transition: transition, Key: transition + key, BusinessKey: key,
		Options: transitions.Options{Scope: "desk"}}
}

// stranded has a fare ride and break down, and waits until its undo is stuck.
func stranded(t *testing.T, e *engine.Engine, key string) uuid.UUID {
	t.Helper()
	board := fare("board", key)
	board.BusinessKey, board.Payload = "", []byte(`{"number":"`+key+`"}`)
	id := submit(t, e, board).Instance
	for _, step := range []string{"charge", "ride"} {
		submit(t, e, fare(step, key))
		require.NoError(t, errOf(e.Await(t.Context(), transitions.Ref{Scope: "desk", Key: step + key})))
	}
	stuckOf(t, e, id, 1)
	return id
}

// stuckOf waits until so many commands of an instance are stuck.
func stuckOf(t *testing.T, e *engine.Engine, id uuid.UUID, n int) (list []transitions.Record) {
	t.Helper()
	await.Eventually(t, "so many are stuck", func() bool {
		var err error
		list, _, err = e.Admin().Stuck(t.Context(), inspect.StuckFilter{Instance: id})
		require.NoError(t, err)
		return len(list) == n
	})
	return list
}

func TestStuckCommandsAreFoundByTheirBusinessKey(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), flows(fares()))
	id := stranded(t, e, "F-1")
	stranded(t, e, "F-2")
	list, more, err := e.Admin().Stuck(t.Context(), inspect.StuckFilter{Workflow: "fare", BusinessKey: "F-1"})
	require.Truef(t, err == nil && !more && len(list) == 1, "%+v, %v", list, err)
	s := list[0]
	assert.Truef(t, s.BusinessKey == "F-1" && s.Instance == id && s.Transition == "charge" && s.Phase == transitions.Undoing &&
		s.Stuck == transitions.StuckUndo, "%+v", s)
	all, _, err := e.Admin().Stuck(t.Context(), inspect.StuckFilter{})
	assert.Truef(t, err == nil && len(all) == 2 && all[0].BusinessKey != "" && all[1].BusinessKey != "", "%+v, %v", all, err)
	none, _, err := e.Admin().Stuck(t.Context(), inspect.StuckFilter{Workflow: "fare", BusinessKey: "F-3"})
	assert.Truef(t, err == nil && len(none) == 0, "%+v, %v", none, err)
	_, _, err = e.Admin().Stuck(t.Context(), inspect.StuckFilter{BusinessKey: "F-1"})
	wantCode(t, err, workflow.InvalidRequest)
}

func TestAnInstanceSaysWhatOfItWaitsForAnOperator(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), flows(fares()))
	id := stranded(t, e, "F-1")
	const undo = `the undo of "charge" waits for an operator to retry, resolve or abandon it: it has failed; no refund`
	v, err := e.Read().ViewByKey(t.Context(), "", "fare", "F-1")
	require.Truef(t, err == nil && len(v.Stuck) == 1 && !v.MoreStuck, "%+v, %v", v.Stuck, err)
	s := v.Stuck[0]
	assert.Truef(t, s.Undo && s.Transition == "charge" && s.Scope == decide.UndoScope(id) && s.Failures == 1 &&
		s.Since.Location() == time.UTC && s.Message == undo, "%+v", s)
	// The failed undo does not block the instance, but it is reported.
	x, err := e.Read().Explain(t.Context(), "", id, "ann", nil)
	assert.Truef(t, err == nil && len(x.Stuck) == 1 && x.Stuck[0].Message == undo, "%+v, %v", x.Stuck, err)
	for _, o := range x.Transitions {
		may := o.Transition == "claim" || o.Transition == "forgive"
		assert.Truef(t, o.Allowed == may && (may || len(o.Reasons) == 1), "%+v", o)
	}
	// A command in flight keeps everybody from it.
	submit(t, e, fare("claim", "F-1"))
	stuckOf(t, e, id, 2)
	x, err = e.Read().Explain(t.Context(), "", id, "ann", nil)
	require.Truef(t, err == nil && len(x.Stuck) == 2, "%+v, %v", x.Stuck, err)
	const claim = `"claim" waits for an operator to retry, resolve or abandon it: its effect is unknown; no answer`
	for _, o := range x.Transitions {
		assert.Truef(t, !o.Allowed && len(o.Reasons) == 2 &&
			o.Reasons[1] == (inspect.Reason{Code: workflow.IllegalTransition, Message: claim}), "%+v", o)
	}
}

func TestACaseIsTheWholeOfAnInstance(t *testing.T) {
	t.Parallel()
	pool, e := started(t, flows(fares()))
	id := stranded(t, e, "F-1")
	submit(t, e, fare("claim", "F-1"))
	stuckOf(t, e, id, 2)
	c, err := e.Read().Case(t.Context(), "", id)
	require.NoError(t, err)
	assert.Truef(t, c.BusinessKey == "F-1" && c.State == "claiming" && len(c.Stuck) == 2 && len(c.InFlight) == 2 && c.Earlier == 0, "%+v", c)
	assert.Truef(t, c.InFlight[0].Transition == "claim" && c.InFlight[1].Phase == transitions.Undoing &&
		c.InFlight[1].Transition == "charge", "in flight: %+v", c.InFlight)
	n := len(c.Timeline)
	assert.Truef(t, int64(n) == c.Version && c.Timeline[0].Transition == "board" && c.Timeline[n-1].Transition == "claim.accepted",
		"%+v", c.Timeline)
	assert.Truef(t, c.Chain.Entries == c.Version && len(c.Chain.Broken) == 0, "%+v", c.Chain)
	exec(t, pool, `UPDATE pawl.audit SET actor = 'nobody' WHERE version = 2`)
	c, err = e.Read().Case(t.Context(), "", id)
	assert.Truef(t, err == nil && len(c.Chain.Broken) == 1 && c.Chain.Broken[0].Version == 2, "%+v, %v", c.Chain, err)
	wantCode(t, errOf(e.Read().Case(t.Context(), "", uuid.New())), workflow.InstanceNotFound)
}

func TestACaseHasTheNewestTransitions(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t))
	submit(t, e, applied("L-1", 1000))
	for i := range inspect.MaxTimeline + 5 {
		submit(t, e, on("book", "L-1", strings.Repeat("k", i+1), 1, ""))
	}
	c, err := e.Read().Case(t.Context(), "", loanID("L-1"))
	assert.Truef(t, err == nil && c.Earlier == 6 && len(c.Timeline) == inspect.MaxTimeline && c.Timeline[0].Version == 7 &&
		slices.IsSortedFunc(c.Timeline, func(a, b transitions.Entry) int { return int(a.Version - b.Version) }) &&
		c.Chain.Entries == c.Version, "%d earlier, %d in the timeline, %+v, %v", c.Earlier, len(c.Timeline), c.Chain, err)
}

// patients are a workflow and its parents. Their treatment fails, so that an operator has to decide.
func patients() func(*engine.Config) {
	treat := func(context.Context, *workflow.Attempt, struct{}, workflow.None) (int, error) {
		return 0, errors.New("no answer")
	}
	return flows(workflow.Define("ward", 1, workflow.Start("open", "open", keep),
		workflow.On("admit", workflow.From("open"), workflow.Stay, func(c *workflow.Call, _ *struct{}, p keyedBy) error {
			c.Spawn(workflow.Child{Workflow: "patient", Transition: "arrive", End: "left"})
			c.Spawn(workflow.Child{Workflow: "patient", Transition: "register", BusinessKey: p.Name, Payload: p, End: "left"})
			return nil
		}),
		workflow.On("left", workflow.From("open"), workflow.Stay, nothing[struct{}, workflow.Ended[struct{}]]),
		workflow.On("pause", workflow.From("open"), "resting", keep),
		workflow.On("close", workflow.From("open", "resting"), "closed", keep)).Final("closed"),
		workflow.Define("patient", 1, workflow.Start("arrive", "in", keep),
			workflow.Start("register", "in", nothing[struct{}, keyedBy]).BusinessKey(func(p keyedBy) string { return p.Name }),
			workflow.Do("treat", workflow.From("in"), "treated", "out", treat, nothing[struct{}, int]).
				OrElse("out", nothing[struct{}, workflow.Failure]).AskOperator(),
			workflow.On("leave", workflow.From("in"), "out", keep)).Final("out"))
}

func TestStuckChildIsAProblemOfItsParent(t *testing.T) {
	t.Parallel()
	pool := database(t)
	last := &told{}
	e := newEngine(t, poolWith(t, pool, last), patients())
	id := submit(t, e, transitions.Command{Workflow: "ward", Transition: "open", Key: "1"}).Instance
	other := submit(t, e, transitions.Command{Workflow: "ward", Transition: "open", Key: "2"}).Instance
	for i, ward := range []uuid.UUID{id, other} {
		submit(t, e, transitions.Command{Workflow: "ward", Transition: "admit", Key: "a", Instance: ward,
			Payload: fmt.Appendf(nil, `{"name":"P-%d"}`, i)})
	}
	patient := transitions.InstanceID("default", "patient", "P-0")
	accepted := submit(t, e, transitions.Command{Workflow: "patient", Transition: "treat", Key: "t", Instance: patient})
	problems := func(id uuid.UUID) []inspect.StuckChild {
		v, err := e.Read().View(t.Context(), "", id)
		require.NoError(t, err)
		return v.StuckChildren
	}
	eventually(t, "the parent has a problem", func() bool { return len(problems(id)) == 1 })
	p := problems(id)[0]
	assert.Truef(t, p.Instance == patient && p.Workflow == "patient" && p.BusinessKey == "P-0" && p.Transition == "treat" &&
		p.Stuck == transitions.StuckUnknown && p.Message != "", "the problem is %+v", p)
	assert.Empty(t, problems(other), "another parent has")
	listed := func(f inspect.ChildFilter) (list []inspect.Child) {
		f.Parent = id
		page, err := e.Read().Children(t.Context(), f)
		require.NoError(t, err)
		wantRanges(t, pool, last, fmt.Sprintf("children of %+v", f))
		return page.Children
	}
	yes, no := true, false
	last.take()
	all := listed(inspect.ChildFilter{})
	assert.Truef(t, len(all) == 2 && !all[0].Stuck && all[1].Stuck && all[1].ID == patient, "the children are %+v", all)
	stuck := listed(inspect.ChildFilter{Stuck: &yes})
	assert.Truef(t, len(stuck) == 1 && stuck[0].ID == patient, "stuck are %+v", stuck)
	well := listed(inspect.ChildFilter{Stuck: &no})
	assert.Truef(t, len(well) == 1 && well[0].ID != patient, "not stuck are %+v", well)
	submit(t, e, transitions.Command{Workflow: "ward", Transition: "pause", Key: "p", Instance: id})
	operate(t, e, transitions.Command{Instance: patient, Key: "op"},
		transitions.Operation{Action: transitions.Abandon, Target: transitions.CommandRef{Scope: accepted.Record.Scope, Key: "t"}})
	eventually(t, "the completion is deferred", func() bool {
		all := listed(inspect.ChildFilter{})
		return len(all) == 2 && all[1].Deferred && !all[0].Deferred
	})
	assert.Empty(t, problems(id), "the problem remains")
}
