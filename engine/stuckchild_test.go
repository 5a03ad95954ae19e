package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

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
	r, err := e.Admin().Operate(t.Context(), transitions.Command{Instance: patient, Key: "op"},
		transitions.Operation{Action: transitions.Abandon, Target: transitions.CommandRef{Scope: accepted.Record.Scope, Key: "t"}})
	require.Truef(t, err == nil && r.Err() == nil, "%+v, %v", r, err)
	eventually(t, "the completion is deferred", func() bool {
		all := listed(inspect.ChildFilter{})
		return len(all) == 2 && all[1].Deferred && !all[0].Deferred
	})
	assert.Empty(t, problems(id), "the problem remains")
}
