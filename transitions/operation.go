package transitions

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/workflow"
)

// Action is an operator's action on an instance or a command in flight.
type Action string

// Actions. They are executed as commands, with a key and an audit row.
const (
	Pause   Action = "pause"   // start nothing new on the instance; work in flight completes
	Resume  Action = "resume"  // end a pause
	Retry   Action = "retry"   // retry a stuck command with all its attempts
	Resolve Action = "resolve" // complete a stuck command with a result
	Abandon Action = "abandon" // abandon a stuck command
	Migrate Action = "migrate" // move the instance to another version of its workflow
	Correct Action = "correct" // correct the state or the data of the instance
)

// Operation is an action with its parameters.
type Operation struct {
	Action Action
	Reason string
	Target CommandRef     // of retry, resolve and abandon: the stuck command
	Result jsontext.Value // of resolve: the activity's result
	To     int            // of migrate: the version
	State  workflow.State // of correct: the new state; "": unchanged
	Data   jsontext.Value // of correct: an object with the changed members; see [workflow.Workflow.Corrected]
}
