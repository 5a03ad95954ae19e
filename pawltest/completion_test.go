package pawltest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// parent is the data of a parent: what its guard allows, and how many children have ended.
type parent struct {
	Allowed bool `json:"allowed"`
	Ended   int  `json:"ended"`
}

// parents start a child with "begin", and take its completion in state "open" only, if it is allowed.
func parents() *workflow.Definition[parent] {
	none := func(*workflow.Call, *parent, workflow.None) error { return nil }
	return workflow.Define("parent", 1,
		workflow.Start("begin", "open", func(c *workflow.Call, d *parent, _ workflow.None) error {
			d.Allowed = true
			c.Spawn(workflow.Child{Workflow: "kid", Transition: "begin", End: "ended"})
			c.Spawn(workflow.Child{Workflow: "kid", Transition: "begin", End: "ended"})
			return nil
		}),
		workflow.On("ended", workflow.From("open"), workflow.Stay, func(_ *workflow.Call, d *parent, _ workflow.Ended[kid]) error {
			d.Ended++
			return nil
		}).Guard("it is allowed", func(_ *workflow.Call, d parent) error {
			if !d.Allowed {
				return workflow.Refuse("not now")
			}
			return nil
		}),
		workflow.On("allow", workflow.From("open"), workflow.Stay, func(_ *workflow.Call, d *parent, _ workflow.None) error {
			d.Allowed = true
			return nil
		}),
		workflow.On("forbid", workflow.From("open"), workflow.Stay, func(_ *workflow.Call, d *parent, _ workflow.None) error {
			d.Allowed = false
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

func TestCompletionWaitsForGuard(t *testing.T) {
	t.Parallel()
	s := pawltest.Run(t, parents(), kids())
	p := s.Start("parent", "begin", nil)
	p.Do("forbid", nil)
	p.Children()[0].Do("finish", nil)
	s.Skip(time.Hour)
	p.Do("close", nil)
	p.Do("reopen", nil)
	s.Settle()
	wantSteps(t, p, "begin", "forbid", "ended.deferred", "close", "reopen")
	h := p.History()
	assert.Equal(t, "not now", h[2].Reason, "deferred with the reason")
	p.Do("allow", nil)
	s.Settle()
	wantSteps(t, p, "begin", "forbid", "ended.deferred", "close", "reopen", "allow", "ended")
}

func TestCompletionIsRecordedOnFinalParent(t *testing.T) {
	t.Parallel()
	s := pawltest.Run(t, parents(), kids())
	p := s.Start("parent", "begin", nil)
	children := p.Children()
	p.Do("close", nil)
	children[0].Do("finish", nil) // before the end of the parent
	s.Settle()
	p.Do("finish", nil)
	children[1].Do("finish", nil) // after it
	s.Settle()
	wantSteps(t, p, "begin", "close", "ended.deferred", "finish", "ended.not_taken", "ended.not_taken")
	h := p.History()
	for i, entry := range h[4:] {
		assert.Equal(t, `{"child":"`+children[i].ID.String()+`","data":{},"state":"done","workflow":"kid"}`, string(entry.Payload),
			"recorded as")
	}
	if i := p.Instance(); i.State != "done" || i.Open || len(i.Links.Deferred) != 0 || len(s.InFlight()) != 0 {
		t.Errorf("the parent is %+v, with %+v", i, s.InFlight())
	}
	r, err := s.Command("", h[4].Scope, h[4].Key)
	assert.Truef(t, err == nil && r.Status == transitions.FailedFinal, "the command is %+v, %v", r, err)
}
