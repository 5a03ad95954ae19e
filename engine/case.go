package engine

import (
	"context"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
)

// Case reads the whole of one instance: what is shown of it, what is in flight, its
// newest transitions, and whether its audit chain is intact. It reads all of that
// chain. Error: InstanceNotFound.
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
