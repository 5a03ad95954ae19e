package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
)

// Nodes lists the nodes that serve, or have lately, the oldest first: what they know, and what they do. With a tenant their sinks are
// those that get its events, and their leases those of its commands; "" is all tenants.
//
// Errors: InvalidRequest, Unavailable.
func (a *Admin) Nodes(ctx context.Context, tenant string) ([]inspect.NodeInfo, error) {
	if err := transitions.CheckTenant(tenant); err != nil {
		return nil, err
	}
	nodes, err := a.e.presence.rows.Nodes(ctx, presenceLost)
	if err != nil {
		return nil, err
	}
	list, byName := make([]inspect.NodeInfo, len(nodes)), map[string]*inspect.NodeInfo{}
	for i, n := range nodes {
		list[i] = inspect.NodeInfo{Node: n, Knowing: known(n.Versions)}
		byName[n.Name] = &list[i]
	}
	leaders, err := a.e.retention.Leaders(ctx)
	if err != nil {
		return nil, store.ReadError("leaderships", err)
	}
	for _, what := range slices.Sorted(maps.Keys(leaders)) {
		if n := byName[leaders[what]]; n != nil {
			n.Leads = append(n.Leads, what)
		}
	}
	sinks, err := a.e.sinks.Deliverers(ctx, tenant)
	if err != nil {
		return nil, err
	}
	for _, s := range sinks {
		if n := byName[s.Node]; n != nil {
			n.Sinks = append(n.Sinks, s.Sink)
		}
	}
	migrations, err := a.Migrations(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range migrations {
		if n := byName[m.Node]; n != nil {
			n.Migrations = append(n.Migrations, m.ID)
		}
	}
	held, whole, err := a.e.reader.Leases(ctx, tenant)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Leases, list[i].AtLeast = held[list[i].Name], !whole
	}
	return list, nil
}

// known reads what a node says that it knows, in order.
func known(versions []string) []inspect.NodeVersion {
	list := make([]inspect.NodeVersion, len(versions))
	for i, text := range versions {
		list[i].Workflow, list[i].Version = store.NameAndVersion(text)
	}
	slices.SortFunc(list, func(a, b inspect.NodeVersion) int {
		return cmp.Or(strings.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Version, b.Version))
	})
	return list
}
