package inspect

import (
	"fmt"
	"slices"
	"time"
)

// Node is a node that serves, or has lately.
type Node struct {
	Name     string
	Versions []string // of the workflows that it knows: the name, a space, the version
	BegunAt  time.Time
	SeenAt   time.Time
	Alive    bool // it has said lately that it serves
}

// Knows reports whether the node knows a version of a workflow.
func (n *Node) Knows(workflow string, version int) bool {
	return slices.Contains(n.Versions, fmt.Sprint(workflow, " ", version))
}

// Version is how a version of a workflow stands.
type Version struct {
	Workflow string
	Version  int
	Begins   bool            // new instances begin with it, where a node knows it
	Counts   []InstanceCount // of its instances, by state, of all tenants
	Open     int64           // of them: those that are in no final state
	Exact    bool            // both are counted, and not estimated
	Knowing  []string        // the nodes that are alive and know it
	Lacking  []string        // those that do not
}
