package engine

import (
	"context"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

// Keys returns the state of the keys of a tenant's commands, or of all tenants for "". It is cheap on large tables: finished commands are
// estimated there, and commands in flight are counted up to a limit. An engine that is not started has no
// scopes of its own.
//
// Errors: InvalidRequest for an invalid tenant, Unavailable, TimedOut.
func (a *Admin) Keys(ctx context.Context, tenant string) (inspect.Keys, error) {
	k := inspect.Keys{Tenant: tenant, Scopes: a.e.pipeline.Scopes(tenant)}
	if err := transitions.CheckTenant(tenant); err != nil {
		return k, err
	}
	if err := a.e.reader.Keys(ctx, &k); err != nil {
		return k, err
	}
	var err error
	if k.Recorded, k.RecordedSince, err = a.e.scopeRows.Read(ctx, tenant); err != nil {
		return k, err
	}
	k.DeadMessages, k.OldestDeadMessage, err = a.e.inbox.Waiting(ctx, tenant, inspect.MaxCounted)
	return k, err
}

// Scopes are how this node has answered the attempts of a tenant's callers since
// its start, by scope, those with the most attempts first. "" is all tenants.
func (a *Admin) Scopes(tenant string) []inspect.ScopeCount { return a.e.pipeline.Scopes(tenant) }
