package inspect

import "time"

// PausedWorkflow is a workflow of which nothing new is begun.
type PausedWorkflow struct {
	Tenant   string
	Workflow string
	Actor    string
	Reason   string
	At       time.Time
}
