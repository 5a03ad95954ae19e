package pawltest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/workflow"
)

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
