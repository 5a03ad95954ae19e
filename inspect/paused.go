package inspect

import "time"

// PausedWorkflow is a workflow of which nothing new is begun.
type PausedWorkflow struct {
	Tenant   string    `json:"-"`
	Workflow string    `json:"workflow"`
	Actor    string    `json:"actor"`
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at"`
}
