package engine

import (
	"context"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
)

// Case reads the whole of one instance: what is shown of it, what is in flight, its
// newest transitions, and whether its audit chain is intact. It reads all of that
// chain. Error: InstanceNotFound.
func (e *Engine) Case(ctx context.Context, tenant string, id uuid.UUID) (c inspect.Case, err error) {
	tenant = tenantOr(tenant)
	if c.View, err = e.View(ctx, tenant, id); err != nil {
		return c, err
	}
	if c.InFlight, err = e.reader.InFlight(ctx, &c.Instance, inspect.MaxWaiting); err != nil {
		return c, err
	}
	c.Earlier = max(0, c.Version-inspect.MaxTimeline)
	if c.Timeline, err = e.History(ctx, tenant, id, c.Earlier, inspect.MaxTimeline); err != nil {
		return c, err
	}
	c.Chain, err = e.Verify(ctx, tenant, id)
	return c, err
}
