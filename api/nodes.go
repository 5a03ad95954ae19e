package api

import (
	"time"

	"github.com/pawlhq/pawl/inspect"
)

// NodeList is the nodes, the oldest first.
type NodeList struct {
	Nodes []Node `json:"nodes"`
}

// Node is what a node knows, and what it does; see [inspect.NodeInfo].
type Node struct {
	Name       string        `json:"name"`
	Build      string        `json:"build"`
	Since      time.Time     `json:"since"`
	Seen       time.Time     `json:"seen"`
	Alive      bool          `json:"alive"`
	Versions   []NodeVersion `json:"versions"`
	Leads      []string      `json:"leads"`
	Sinks      []string      `json:"sinks"`
	Migrations []int64       `json:"migrations"`
	Leases     int64         `json:"leases"`
	AtLeast    bool          `json:"at_least"`
}

// NodeVersion is a version of a workflow that a node knows.
type NodeVersion struct {
	Workflow string `json:"workflow"`
	Version  int    `json:"version"`
}

// NodesOf is what the interface shows of nodes.
func NodesOf(list []inspect.NodeInfo) []Node {
	same := func(s *string) string { return *s }
	return each(list, func(n *inspect.NodeInfo) Node {
		return Node{Name: n.Name, Build: n.Build, Since: n.BegunAt.UTC(), Seen: n.SeenAt.UTC(), Alive: n.Alive,
			Leases: n.Leases, AtLeast: n.AtLeast, Versions: each(n.Knowing, func(v *inspect.NodeVersion) NodeVersion { return NodeVersion(*v) }),
			Leads: each(n.Leads, same), Sinks: each(n.Sinks, same), Migrations: each(n.Migrations, func(id *int64) int64 { return *id })}
	})
}

// nodes lists them.
func (a *API) nodes(r *request) (NodeList, error) {
	list, err := a.engine.Admin().Nodes(r.Context(), r.tenant())
	return NodeList{NodesOf(list)}, err
}
