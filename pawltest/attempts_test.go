package pawltest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type asking struct {
	Answer int               `json:"answer"`
	Failed *workflow.Failure `json:"failed,omitempty"`
}

// trigger is the payload of the activity, which the end of a child can start.
type trigger = workflow.Ended[asking]

// calls records what of an activity was called, in order.
type calls struct {
	mu    sync.Mutex
	names []string
}

func (c *calls) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, name)
}

func (c *calls) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.names)
}

// asks has an activity whose check can never tell. It is started by a caller, or by the timer in "timed", or by the end of a child in
// "parent".
func asks(c *calls) *workflow.Definition[asking] {
	stay := func(*workflow.Call, *asking, workflow.None) error { return nil }
	ask := workflow.Do("ask", workflow.From("open", "timed", "parent"), "asking", "done",
		func(context.Context, *workflow.Attempt, asking, trigger) (int, error) {
			c.add("work")
			return 7, nil
		}, func(_ *workflow.Call, d *asking, n int) error { d.Answer = n; return nil }).
		OrElse("failed", func(_ *workflow.Call, d *asking, f workflow.Failure) error { d.Failed = &f; return nil }).
		Check(func(context.Context, *workflow.Attempt, asking, trigger) (*int, error) {
			c.add("check")
			return nil, errors.New("cannot tell")
		}).
		Retry(workflow.Retry{Attempts: 3, First: time.Millisecond, Max: time.Millisecond})
	return workflow.Define("asks", 1,
		workflow.Start("open", "open", stay),
		workflow.Start("open-timed", "timed", stay),
		workflow.Start("spawn", "parent", func(call *workflow.Call, _ *asking, _ workflow.None) error {
			call.Spawn(workflow.Child{Workflow: "asks", Transition: "end", End: "ask"})
			return nil
		}),
		workflow.Start("end", "done", stay),
		ask,
	).After("at-once", workflow.From("timed"), time.Millisecond, "ask").Final("done", "failed")
}

// asked starts the activity in one of the ways there are.
func asked(t *testing.T, way string, now time.Time, submit func(transitions.Command) (transitions.Receipt, error)) uuid.UUID {
	t.Helper()
	start, command := "open", transitions.Command{Workflow: "asks", Transition: "ask", Key: "ask"}
	switch way {
	case "timer":
		start = "open-timed"
	case "child":
		start = "spawn"
	case "scheduled":
		command.NotBefore = now.Add(10 * time.Millisecond)
	}
	r, err := submit(transitions.Command{Workflow: "asks", Transition: start, Key: "start"})
	require.NoError(t, err)
	if command.Instance = r.Instance; start == "open" {
		if r, err := submit(command); err != nil || r.Status != 202 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	return command.Instance
}

// The check asks about an earlier attempt. The first attempt is the work, whatever started the activity.
func TestFirstAttemptIsTheWork(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"caller", "timer", "scheduled", "child"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			var c calls
			s := pawltest.Run(t, asks(&c))
			id := asked(t, way, s.Now(), s.Submit)
			s.Skip(time.Hour)
			if i, err := s.Instance("", id); err != nil || i.State != "done" || !slices.Equal(c.list(), []string{"work"}) {
				t.Errorf("in memory: %s, %v after %q", i.State, err, c.list())
			}
			var called calls
			e := pawltest.Engine(t, asks(&called))
			id = asked(t, way, time.Now(), func(c transitions.Command) (transitions.Receipt, error) { return e.Submit(t.Context(), c) })
			await.Eventually(t, "the activity ends", func() bool {
				i, err := e.Read().Instance(t.Context(), "", id)
				return err == nil && i.State == "done"
			})
			assert.Truef(t, slices.Equal(called.list(), []string{"work"}), "engine: %q", called.list())
		})
	}
}
