package console_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// jobs are a workflow whose instances get stuck or end, and a parent that takes no completion until it is opened.
func jobs() []workflow.Source {
	type data struct{}
	nothing := func(*workflow.Call, *data, workflow.None) error { return nil }
	work := func(context.Context, *workflow.Attempt, data, workflow.None) (int, error) {
		return 0, errors.New("no answer")
	}
	return []workflow.Source{
		workflow.Define("shop", 1,
			workflow.Start("build", "shut", func(c *workflow.Call, _ *data, _ workflow.None) error {
				for range 2 {
					c.Spawn(workflow.Child{Workflow: "job", Transition: "begin", End: "finished"})
				}
				return nil
			}),
			workflow.On("unlock", workflow.From("shut"), "open", nothing),
			workflow.On("finished", workflow.From("open"), workflow.Stay, func(*workflow.Call, *data, workflow.Ended[data]) error { return nil }),
			workflow.On("close", workflow.From("open"), "closed", nothing)).Final("closed"),
		workflow.Define("job", 1, workflow.Start("begin", "begun", nothing),
			workflow.Do("work", workflow.From("begun"), "working", "done", work, func(*workflow.Call, *data, int) error { return nil }).
				OrElse("done", func(*workflow.Call, *data, workflow.Failure) error { return nil }).AskOperator(),
			workflow.On("drop", workflow.From("begun"), "done", nothing)).Final("done"),
	}
}

func TestPageShowsProblemsOfChildren(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(c *service.Config) { c.Workflows = append(c.Workflows, jobs()...) })
	id := s.submit(transitions.Command{Workflow: "shop", Transition: "build"}).Instance
	list, err := s.Engine().Read().Children(t.Context(), inspect.ChildFilter{Parent: id})
	require.Truef(t, err == nil && len(list.Children) == 2, "%v %v", len(list.Children), err)
	s.submit(transitions.Command{Instance: list.Children[0].ID, Transition: "work"})
	s.submit(transitions.Command{Instance: list.Children[1].ID, Transition: "drop"})
	await.Eventually(t, "one child is stuck, and the completion of the other one is deferred", func() bool {
		v, err := s.Engine().Read().View(t.Context(), "", id)
		return err == nil && len(v.StuckChildren) == 1 && len(v.Links.Deferred) == 1
	})
	page := s.visitor(s.key("olga", everything)).get("/console/instances/" + id.String())
	page.want(200, "<em>stuck</em>", "its end waits for another state")
	got := reasons(page)
	assert.Containsf(t, got["stuckchild"], `a child is stuck, job `+list.Children[0].ID.String()+`: "work" waits for an operator`,
		"%q", got)
	assert.Containsf(t, got["deferred"], `a child has completed, but "finished" is not possible now`, "%q", got)
	narrow := s.visitor(s.key("ned", "read:shop")).get("/console/instances/" + id.String())
	if got := reasons(narrow.want(200)); got["stuckchild"] != "" {
		t.Errorf("%q", got)
	}
}
