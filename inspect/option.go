package inspect

import "github.com/pawlhq/pawl/workflow"

// Option is one transition as it stands for an instance and an actor.
type Option struct {
	Transition string           `json:"transition"`
	Allowed    bool             `json:"allowed"`
	To         []workflow.State `json:"to"`
	Reasons    []Reason         `json:"reasons,omitempty"` // why not
}

// Reason is why a transition is not allowed.
type Reason struct {
	Code    workflow.Code `json:"code"`
	Message string        `json:"message"`
}
