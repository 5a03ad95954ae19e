package inspect

import "github.com/pawlhq/pawl/workflow"

// WorkflowVersion describes a version of a workflow: its instances of all tenants, and the nodes that know it.
type WorkflowVersion struct {
	Workflow     string       `json:"workflow"`
	Version      int          `json:"version"`
	Begins       bool         `json:"begins,omitzero"` // new instances begin with it on nodes that know it
	Said         bool         `json:"said,omitzero"`   // an operator set the default version; otherwise it is the newest
	Open         int64        `json:"open"`            // instances in no final state
	Exact        bool         `json:"exact"`           // Open and States are counted, not estimated
	States       []StateCount `json:"states"`
	Nodes        []string     `json:"nodes"`         // live nodes that know it
	NodesWithout []string     `json:"nodes_without"` // live nodes that do not
}

// StateCount is the number of instances of a version in one state.
type StateCount struct {
	State workflow.State `json:"state"`
	Open  bool           `json:"open"` // not a final state
	Count int64          `json:"count"`
	Exact bool           `json:"exact"` // counted; otherwise an estimate of PostgreSQL's planner
}
