package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// While the activity is under way another command takes the case on: the attempt
// is told to stop, and what it has done all the same is undone.
func TestACancelledEffectIsUndone(t *testing.T) {
	t.Parallel()
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprint("happened ", happened), func(t *testing.T) {
			s, c := run(t)
			var undone []string
			pawltest.Fake(s, "move", "call", func(ctx context.Context, a *workflow.Attempt, _ move, _ note) (note, error) {
				c.As("ann").Do("leave", nil)
				cancelled, is := errors.AsType[*decide.CancelledError](context.Cause(ctx))
				assert.Truef(t, is && cancelled.By == "ann" && ctx.Err() != nil, "the attempt is told %v", context.Cause(ctx))
				if happened {
					return note{Text: a.Key}, nil
				}
				return note{}, ctx.Err()
			})
			pawltest.FakeUndo(s, "move", "call", func(_ context.Context, a *workflow.Attempt, _ move, _ note, r *note) error {
				undone = append(undone, fmt.Sprint(r != nil && r.Text == a.Key))
				if len(undone) < 2 {
					return errBusy
				}
				return nil
			})
			accepted := c.Do("call", nil)
			wantCode(t, s.Await(accepted).Err(), workflow.CommandCancelled)
			s.Skip(time.Minute)
			assert.Equalf(t, fmt.Sprint([]bool{happened, happened}), fmt.Sprint(undone), "undone with the result %v", undone)
			wantSteps(t, c, "begin", "call.accepted", "leave", "call.undone")
		})
	}
}

func TestACommandThatIsAskedToStopEnds(t *testing.T) {
	t.Parallel()
	s, c := run(t)
	n := answers(s, "call")
	accepted := c.Do("call", nil)
	for range 2 {
		r, err := s.Cancel("", accepted.Record.Scope, accepted.Record.Key, "ann")
		assert.Truef(t, err == nil && r.CancelledBy == "ann" && r.Revision == 1, "got %+v, %v", r, err)
	}
	r := s.Await(accepted)
	wantCode(t, r.Err(), workflow.CommandCancelled)
	assert.Equal(t, 0, *n, "attempts")
	wantNotes(t, c, "begin here", "cancelled after 0, unknown false: cancelled by ann")
	again, err := s.Cancel("", accepted.Record.Scope, accepted.Record.Key, "bob")
	assert.Truef(t, err == nil && again.CancelledBy == "ann" && !again.InFlight(), "what is finished: %+v, %v", again, err)
	later, err := s.Submit(transitions.Command{Key: "later", Instance: c.ID, Transition: "write",
		Options: transitions.Options{NotBefore: s.Now().Add(time.Hour)}})
	require.NoError(t, err)
	_, err = s.Cancel("", later.Record.Scope, "later", "ann")
	require.NoError(t, err)
	wantCode(t, s.Await(later).Err(), workflow.CommandCancelled)
}

// A fake may drive the run on, as a customer does who does not wait.
func TestARunInsideOfAnAttemptDoesNotBeginItAgain(t *testing.T) {
	t.Parallel()
	s, c := run(t)
	n := 0
	pawltest.Fake(s, "move", "call", func(context.Context, *workflow.Attempt, move, note) (note, error) {
		n++
		c.Do("write", note{Text: "meanwhile"})
		s.Skip(2 * time.Hour)
		return note{}, nil
	})
	s.Await(c.Do("call", nil))
	assert.Equal(t, 1, n, "attempts")
	wantSteps(t, c, "begin", "call.accepted", "write", "call")
}

// parent counts the children that have ended.
type parent struct {
	Ended int `json:"ended"`
}

// parents start two children with "begin", and take their completions only in state "open".
func parents() *workflow.Definition[parent] {
	none := func(*workflow.Call, *parent, workflow.None) error { return nil }
	return workflow.Define("parent", 1,
		workflow.Start("begin", "open", func(c *workflow.Call, _ *parent, _ workflow.None) error {
			c.Spawn(workflow.Child{Workflow: "kid", Transition: "begin", End: "ended"})
			c.Spawn(workflow.Child{Workflow: "kid", Transition: "begin", End: "ended"})
			return nil
		}),
		workflow.On("ended", workflow.From("open"), workflow.Stay, func(_ *workflow.Call, d *parent, _ workflow.Ended[kid]) error {
			d.Ended++
			return nil
		}),
		workflow.On("close", workflow.From("open"), "closed", none),
		workflow.On("reopen", workflow.From("closed"), "open", none),
		workflow.On("finish", workflow.From("open", "closed"), "done", none),
	).Final("done")
}

type kid struct {
	Name string `json:"name,omitempty"`
}

func kids() *workflow.Definition[kid] {
	none := func(*workflow.Call, *kid, workflow.None) error { return nil }
	return workflow.Define("kid", 1, workflow.Start("begin", "open", none), workflow.On("finish", workflow.From("open"), "done", none)).
		Final("done")
}

func TestCompletionWaitsForState(t *testing.T) {
	t.Parallel()
	s := pawltest.Run(t, parents(), kids())
	p := s.Start("parent", "begin", nil)
	p.Do("close", nil)
	for _, c := range p.Children() {
		c.Do("finish", nil)
	}
	s.Skip(48 * time.Hour)
	wantSteps(t, p, "begin", "close", "ended.deferred", "ended.deferred")
	assert.Equal(t, 2, len(s.InFlight()), "completions wait, want 2")
	p.Do("reopen", nil)
	s.Settle()
	wantSteps(t, p, "begin", "close", "ended.deferred", "ended.deferred", "reopen", "ended", "ended")
	i := p.Instance()
	assert.Truef(t, len(i.Links.Deferred) == 0 && len(s.InFlight()) == 0, "still deferred: %+v, %+v", i.Links, s.InFlight())
}
