package inspect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/workflow"
)

// Node is a node that serves, or has lately.
type Node struct {
	Name     string    `json:"name"`
	Versions []string  `json:"-"`     // of the workflows that it knows: the name, a space, the version
	Build    string    `json:"build"` // which program it is, and with which version of Pawl
	BegunAt  time.Time `json:"since"`
	SeenAt   time.Time `json:"seen"`
	Alive    bool      `json:"alive"` // it has said lately that it serves
	Begins   []string  `json:"-"`     // what new instances begin with on it, as Versions; empty while that changes, nil: its program does not report it
}

// Knows reports whether the node knows a version of a workflow.
func (n *Node) Knows(workflow string, version int) bool {
	return slices.Contains(n.Versions, fmt.Sprint(workflow, " ", version))
}

// BeginsWith returns the default version of a workflow on the node, 0 if the node does not know it. It is not confirmed while it changes,
// or if the node's program does not report it.
func (n *Node) BeginsWith(workflow string) (version int, confirmed bool) {
	for _, text := range n.Begins {
		if rest, is := strings.CutPrefix(text, workflow+" "); is {
			version, err := strconv.Atoi(rest)
			return version, err == nil
		}
	}
	knows := slices.ContainsFunc(n.Versions, func(text string) bool { return strings.HasPrefix(text, workflow+" ") })
	return 0, !knows
}

// NodeInfo describes the workflows and the work of a node.
type NodeInfo struct {
	Node
	Knowing    []NodeVersion `json:"versions"`   // Versions, in order
	Leads      []string      `json:"leads"`      // what it does for all nodes, such as Retaining
	Sinks      []string      `json:"sinks"`      // those that it delivers to
	Migrations []int64       `json:"migrations"` // those of all instances of a version that it does
	Leases     int64         `json:"leases"`     // leases of commands in flight, including expired ones that no node has taken over
	AtLeast    bool          `json:"at_least"`   // there are more leases than are counted
}

// NodeVersion is a version of a workflow that a node knows.
type NodeVersion struct {
	Workflow string `json:"workflow"`
	Version  int    `json:"version"`
}

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

// Definition is a version of a workflow that has run on the database.
type Definition struct {
	Workflow  string
	Version   int
	CreatedAt time.Time // when it was first seen
	Given     bool      // the engine that answers has this version
	Changed   bool      // and it says something else there: no node starts with it

	// Members of its data that are stored, each with its kind, for which this build is refused: those that it does not have, where it
	// has never run here, and those that it may not be able to read.
	Lacking, Unreadable []string
}
