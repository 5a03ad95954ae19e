package api

import "github.com/pawlhq/pawl/inspect"

// NodeList is the nodes, the oldest first.
type NodeList struct {
	Nodes []inspect.NodeInfo `json:"nodes"`
}

func (a *API) nodes(r *request) (NodeList, error) {
	list, err := a.engine.Admin().Nodes(r.Context(), r.tenant())
	for i := range list {
		list[i].BegunAt, list[i].SeenAt = list[i].BegunAt.UTC(), list[i].SeenAt.UTC()
	}
	return NodeList{list}, err
}
