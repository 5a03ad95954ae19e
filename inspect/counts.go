package inspect

import (
	"math"
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// CountFilter selects what is counted. Empty fields select everything.
type CountFilter struct {
	Tenant     string // "" is everybody
	Workflow   string
	Definition int
	States     []workflow.State // any of these
	Open       *bool
}

// Check refuses a filter that cannot be meant. Error: InvalidRequest.
func (f *CountFilter) Check() error {
	if err := transitions.CheckTenant(f.Tenant); err != nil {
		return err
	}
	if err := checkStates(f.States); err != nil {
		return err
	}
	return checkDefinition(f.Definition)
}

// maxState is the longest state that can be asked for, in bytes.
const maxState = 255

func checkStates(states []workflow.State) error {
	for _, s := range states {
		if problem := transitions.TextProblem(string(s), maxState); problem != "" {
			return workflow.Errorf(workflow.InvalidRequest, "the state %s", problem)
		}
	}
	return nil
}

func checkDefinition(version int) error {
	if version < 0 || version > math.MaxInt32 {
		return workflow.Errorf(workflow.InvalidRequest, "the definition %d is not a version from 1 on", version)
	}
	return nil
}

// Counts is how many instances there are of each workflow, version and state.
type Counts struct {
	At     time.Time // by the node's clock
	Tenant string    // whose; "" is everybody's
	Exact  bool      // all of them are
	Total  int64
	Counts []InstanceCount // by workflow, definition, state; those that have none are left out
}

// InstanceCount is how many instances there are of one kind.
type InstanceCount struct {
	Workflow   string
	Definition int // the version of the definition that they began with
	State      workflow.State
	Open       bool // not in a final state
	Count      int64
	// Exact says that they were counted. Otherwise there are more than are counted,
	// and Count is what the planner of PostgreSQL expects after its last ANALYZE.
	Exact bool
}

// Add counts more instances, of whatever kind.
func (c *Counts) Add(more InstanceCount) {
	c.Total += more.Count
	c.Exact = c.Exact && more.Exact
	for i := range c.Counts {
		have := &c.Counts[i]
		if have.Workflow == more.Workflow && have.Definition == more.Definition && have.State == more.State && have.Open == more.Open {
			have.Count += more.Count
			have.Exact = have.Exact && more.Exact
			return
		}
	}
	c.Counts = append(c.Counts, more)
}
