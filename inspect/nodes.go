package inspect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Node is a node that serves, or has lately.
type Node struct {
	Name     string
	Versions []string // of the workflows that it knows: the name, a space, the version
	Build    string   // which program it is, and with which version of Pawl
	BegunAt  time.Time
	SeenAt   time.Time
	Alive    bool     // it has said lately that it serves
	Begins   []string // what new instances begin with on it, as Versions; empty while that changes, nil: its program does not report it
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
	Knowing    []NodeVersion // Versions, in order
	Leads      []string      // what it does for all nodes, such as Retaining
	Sinks      []string      // those that it delivers to
	Migrations []int64       // those of all instances of a version that it does
	Leases     int64         // leases of commands in flight, including expired ones that no node has taken over
	AtLeast    bool          // there are more leases than are counted
}

// NodeVersion is a version of a workflow that a node knows.
type NodeVersion struct {
	Workflow string
	Version  int
}
