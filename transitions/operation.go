package transitions

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/workflow"
)

// Action is what an operator can do to an instance or a command in flight.
type Action string

// The actions. They are commands: named by a key, audited, replayed.
const (
	Pause   Action = "pause"   // begin nothing new on the instance; what is in flight finishes
	Resume  Action = "resume"  // the end of that
	Retry   Action = "retry"   // a stuck command: try again, with all its attempts
	Resolve Action = "resolve" // a stuck command: it happened, with this result
	Abandon Action = "abandon" // a stuck command: give it up
	Migrate Action = "migrate" // the instance goes on by another version of its workflow
	Correct Action = "correct" // the instance is in another state than it should be, or its data is wrong
)

// Operation is an action with what it is about.
type Operation struct {
	Action Action
	Reason string
	Target CommandRef     // of retry, resolve and abandon: the stuck command
	Result jsontext.Value // of resolve: what the activity would have returned
	To     int            // of migrate: the version
	State  workflow.State // of correct: the state in which it goes on; "": that of before
	Data   jsontext.Value // of correct: an object with the members that change; see [workflow.Workflow.Corrected]
}
