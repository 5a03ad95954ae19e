package wire

import "github.com/pawlhq/pawl/workflow"

// WorkflowSummary is a workflow in the list of all.
type WorkflowSummary struct {
	Name    string           `json:"name"`
	Version int              `json:"version"`
	Hash    string           `json:"hash"`
	States  []workflow.State `json:"states"`
}

// WorkflowList is every workflow, by name, in its newest version.
type WorkflowList struct {
	Workflows []WorkflowSummary `json:"workflows"`
}
