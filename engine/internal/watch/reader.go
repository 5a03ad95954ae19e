package watch

import (
	"context"
	"slices"

	"github.com/pawlhq/pawl/internal/pause"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// want has a command read soon. h.mu is held.
func (h *Hub) want(c *command) {
	if c.wanted || h.ended {
		return
	}
	c.wanted = true
	tenant := c.ref.Tenant
	list, read := h.wanted[tenant]
	h.wanted[tenant] = append(list, c)
	if !read {
		h.work.Go(func() { h.reader(tenant) })
	}
}

// reader reads a tenant's commands until none is wanted. What becomes wanted
// during one read is the next.
func (h *Hub) reader(tenant string) {
	for {
		select {
		case h.slots <- struct{}{}:
		case <-h.ctx.Done():
			return
		}
		batch := h.take(tenant)
		if len(batch) > 0 {
			h.read(tenant, batch)
		}
		<-h.slots
		if len(batch) == 0 || !pause.For(h.ctx, readGap) {
			return
		}
	}
}

// take is the next piece of what is wanted. When it is empty, the tenant has no
// reader any more.
func (h *Hub) take(tenant string) []*command {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.wanted[tenant]
	list = slices.DeleteFunc(list, func(c *command) bool { return c.watchers+c.waiters == 0 })
	if len(list) == 0 {
		delete(h.wanted, tenant)
		return nil
	}
	n := min(len(list), readSize)
	h.wanted[tenant] = list[n:]
	for _, c := range list[:n] {
		c.wanted = false
		c.begun++
	}
	return list[:n]
}

// read reads commands and tells those who watch them.
func (h *Hub) read(tenant string, batch []*command) {
	refs := make([]transitions.Ref, len(batch))
	for i, c := range batch {
		refs[i] = c.ref
	}
	ctx, cancel := context.WithTimeout(h.ctx, readBudget)
	defer cancel()
	records, err := h.config.Read(ctx, tenant, refs)
	if err != nil {
		if h.ctx.Err() == nil {
			h.config.Log.Warn("cannot read the commands that are watched", "tenant", tenant, "error", err)
		}
		err = &workflow.Error{Code: workflow.Unavailable, Message: "the command could not be read; try again", Cause: err}
	}
	found := make(map[transitions.Ref]*transitions.Record, len(records))
	for i := range records {
		found[transitions.Ref{Tenant: tenant, Scope: records[i].Scope, Key: records[i].Key}] = &records[i]
	}
	now := h.config.Clock.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range batch {
		c.update(found[c.ref], err, now)
	}
}
