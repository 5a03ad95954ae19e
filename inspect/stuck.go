package inspect

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// StuckCommand is a command on an instance that waits for an operator.
type StuckCommand struct {
	Transition string
	Undo       bool // what waits is the undo of the transition's effect
	Scope      string
	Key        string
	Stuck      string // why it waits
	Failure    string // what the newest attempt that failed said
	Failures   int
	Since      time.Time
	Message    string // all of that in a sentence, and what can be done
}

// Describe sets the message, and converts the time to UTC.
func (s *StuckCommand) Describe() {
	s.Since = s.Since.UTC()
	what := fmt.Sprintf("%q", s.Transition)
	if s.Undo {
		what = "the undo of " + what
	}
	s.Message = what + " waits for an operator to retry, resolve or abandon it: " + s.reason()
	if s.Failure != "" {
		s.Message += "; " + s.Failure
	}
}

func (s *StuckCommand) reason() string {
	switch s.Stuck {
	case transitions.StuckUnknown:
		return "its effect is unknown"
	case transitions.StuckUndo:
		return "it has failed"
	case transitions.StuckUndecidable:
		return "its outcome cannot be decided"
	default:
		return s.Stuck
	}
}

// Explanation is what an actor can do with an instance now, and why not.
type Explanation struct {
	Transitions []Option
	Stuck       []StuckCommand // what an operator has to act on
}

// Blocked adds the stuck commands to an explanation. If the state excludes a transition because the command in flight waits for an
// operator, that is a reason too.
func (x *Explanation) Blocked(v *View) {
	x.Stuck = v.Stuck
	for _, s := range v.Stuck {
		ref := v.Links.InFlight
		if ref == nil || ref.Scope != s.Scope || ref.Key != s.Key {
			continue
		}
		for i := range x.Transitions {
			if o := &x.Transitions[i]; len(o.Reasons) > 0 && o.Reasons[0].Code == workflow.IllegalTransition {
				o.Reasons = append(o.Reasons, Reason{Code: workflow.IllegalTransition, Message: s.Message})
			}
		}
	}
}

// StuckFilter selects commands that wait for an operator. Empty fields select everything.
type StuckFilter struct {
	Tenant      string
	Workflow    string
	BusinessKey string // of the instance, with Workflow
	Instance    uuid.UUID
	After       transitions.Record // the cursor: the last of the page before, of which UpdatedAt, Scope and Key count
	Limit       int                // 1 to 1000; 0 is 100
}

// PausedFilter selects instances that are paused. Empty fields select everything.
type PausedFilter struct {
	Tenant   string
	Workflow string
	After    PausedInstance // the cursor: the last of the page before, of which Workflow and Instance count
	Limit    int            // 1 to 1000; 0 is 100
}

// PausedInstance is an instance on which nothing new is begun.
type PausedInstance struct {
	Workflow    string         `json:"workflow"`
	Instance    uuid.UUID      `json:"instance"`
	BusinessKey string         `json:"business_key,omitempty"`
	State       workflow.State `json:"state"`
	Actor       string         `json:"actor"` // the actor of the pause in the audit
	Reason      string         `json:"reason,omitempty"`
	At          time.Time      `json:"at"`
}

// PausedWorkflow is a workflow of which nothing new is begun.
type PausedWorkflow struct {
	Tenant   string    `json:"-"`
	Workflow string    `json:"workflow"`
	Actor    string    `json:"actor"`
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at"`
}
