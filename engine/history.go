package engine

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// InstanceAt reads an instance as it was at a version. Error: InstanceNotFound, also for a version that it never had.
func (r *Reader) InstanceAt(ctx context.Context, tenant string, id uuid.UUID, version int64) (inspect.Past, error) {
	tenant = tenantOr(tenant)
	entries, err := r.e.audit.At(ctx, tenant, id, version)
	if err != nil {
		return inspect.Past{}, store.ReadError("history", err)
	}
	return r.e.past(ctx, tenant, id, entries, func(now *transitions.Instance) error {
		return notThen("the instance has versions from 1 to %d; version %d does not exist", now.Version, version)
	})
}

// The whole years of a timestamptz, in microseconds that 64 bits hold.
const (
	firstYear = -4712
	lastYear  = 294246
)

// InstanceAsOf reads an instance as it was at a time, which is that of the decisions: its newest version of which the audit row's time is
// not later. A time of a moment ago may still get another answer, from a transition that was decided then and is being committed. Looking
// back costs as many index entries as the instance has had transitions since. Errors: InstanceNotFound, also for a time before its first
// version; InvalidRequest for one that no row can have.
func (r *Reader) InstanceAsOf(ctx context.Context, tenant string, id uuid.UUID, at time.Time) (inspect.Past, error) {
	tenant = tenantOr(tenant)
	if year := at.UTC().Year(); year < firstYear || year > lastYear {
		return inspect.Past{}, workflow.Errorf(workflow.InvalidRequest, "the year %d is not one from %d to %d", year, firstYear, lastYear)
	}
	entries, err := r.e.audit.AsOf(ctx, tenant, id, at)
	if err != nil {
		return inspect.Past{}, store.ReadError("history", err)
	}
	return r.e.past(ctx, tenant, id, entries, func(*transitions.Instance) error {
		return notThen("the instance has no history at %s: it was created, or imported, later", at.UTC().Format(time.RFC3339Nano))
	})
}

// notThen is the error for an instance that is there now, and was not at the version or the time asked for.
func notThen(format string, args ...any) error {
	err := workflow.Errorf(workflow.InstanceNotFound, format, args...)
	err.Cause = inspect.ErrNotThen
	return err
}

// past is the instance after the transition of an audit row. The row was read before the instance, so it cannot be newer.
func (e *Engine) past(ctx context.Context, tenant string, id uuid.UUID, entries []transitions.Entry,
	absent func(now *transitions.Instance) error,
) (inspect.Past, error) {
	now, err := e.reader.Instance(ctx, tenant, id)
	if err != nil {
		return inspect.Past{}, err
	}
	if len(entries) == 0 {
		return inspect.Past{}, absent(&now)
	}
	then := &entries[0]
	return inspect.Past{
		Tenant: tenant, ID: id, Workflow: now.Workflow, Definition: now.DefinitionAt(then.Version), BusinessKey: now.BusinessKey,
		State: then.To, Version: then.Version, Newest: now.Version, Data: then.Data, Erased: then.Data == nil,
		Open:      now.Open || then.Version < now.Version, // nothing leaves a final state
		CreatedAt: now.CreatedAt, UpdatedAt: then.At,
	}, nil
}

// Case reads the whole of one instance: what is shown of it, what is in flight, its newest transitions, and whether its audit chain is
// intact. It reads all of that chain. Error: InstanceNotFound.
func (r *Reader) Case(ctx context.Context, tenant string, id uuid.UUID) (c inspect.Case, err error) {
	tenant = tenantOr(tenant)
	if c.View, err = r.View(ctx, tenant, id); err != nil {
		return c, err
	}
	if c.InFlight, err = r.e.reader.InFlight(ctx, &c.Instance, inspect.MaxWaiting); err != nil {
		return c, err
	}
	if err = r.e.timeline(ctx, &c, inspect.MaxTimeline); err != nil {
		return c, err
	}
	c.Chain, err = r.e.Admin().Verify(ctx, tenant, id)
	return c, err
}

// timeline reads the newest transitions of a case: fewer than most where that many have more bytes than a page.
func (e *Engine) timeline(ctx context.Context, c *inspect.Case, most int64) (err error) {
	c.Earlier = max(0, c.Version-most)
	if c.Timeline, err = e.Read().History(ctx, c.Tenant, c.ID, c.Earlier, int(most)); err != nil {
		return err
	}
	if n := len(c.Timeline); n > 0 && most > 1 && c.Timeline[n-1].Version < c.Version {
		return e.timeline(ctx, c, most/2)
	}
	return nil
}
