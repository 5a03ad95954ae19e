package engine

import (
	"context"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

// Keys tells how the keys of a tenant's commands stand, or of everybody's for "".
// It is cheap on large tables: what is finished is estimated there, and what is
// in flight is counted up to a bound. It works on an engine that is not started,
// which has no scopes of its own.
//
// Errors: InvalidRequest for a tenant that cannot be, Unavailable, TimedOut.
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
