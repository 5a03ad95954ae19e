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
	list := make([]inspect.NodeInfo, len(nodes))
	for i, n := range nodes {
		list[i] = inspect.NodeInfo{Node: n, Knowing: known(n.Versions)}
	}
	for _, part := range []func(context.Context, string, []inspect.NodeInfo) error{a.e.leaders, a.e.deliverers, a.e.migrators, a.e.leaseholders} {
		if err := part(ctx, tenant, list); err != nil {
			return nil, err
		}
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

// named calls do with the node of a name, where it is in the list.
func named(list []inspect.NodeInfo, name string, do func(*inspect.NodeInfo)) {
	if i := slices.IndexFunc(list, func(n inspect.NodeInfo) bool { return n.Name == name }); i >= 0 {
		do(&list[i])
	}
}

func (e *Engine) leaders(ctx context.Context, _ string, list []inspect.NodeInfo) error {
	leaders, err := e.retention.Leaders(ctx)
	if err != nil {
		return store.ReadError("leaderships", err)
	}
	for _, what := range slices.Sorted(maps.Keys(leaders)) {
		named(list, leaders[what], func(n *inspect.NodeInfo) { n.Leads = append(n.Leads, what) })
	}
	return nil
}

func (e *Engine) deliverers(ctx context.Context, tenant string, list []inspect.NodeInfo) error {
	sinks, err := e.sinks.Deliverers(ctx, tenant)
	for _, s := range sinks {
		named(list, s.Node, func(n *inspect.NodeInfo) { n.Sinks = append(n.Sinks, s.Sink) })
	}
	return err
}

func (e *Engine) migrators(ctx context.Context, _ string, list []inspect.NodeInfo) error {
	migrations, err := e.Admin().Migrations(ctx)
	for _, m := range migrations {
		named(list, m.Node, func(n *inspect.NodeInfo) { n.Migrations = append(n.Migrations, m.ID) })
	}
	return err
}

func (e *Engine) leaseholders(ctx context.Context, tenant string, list []inspect.NodeInfo) error {
	held, whole, err := e.reader.Leases(ctx, tenant)
	for i := range list {
		list[i].Leases, list[i].AtLeast = held[list[i].Name], !whole
	}
	return err
}
