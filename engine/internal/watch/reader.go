package watch

import (
	"context"
	"slices"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// want has a command read soon. h.mu is held.
func (h *Hub) want(c *command) {
	if c.wanted || h.ended {
		return
	}
	c.wanted = true
	h.wanted = append(h.wanted, c)
	if h.reading == 0 || h.reading < readers && len(h.wanted) > readSize {
		h.reading++
		h.work.Go(h.reader)
	}
}

// reader reads commands until no reads are requested. Requests that arrive during a read are in the next one.
func (h *Hub) reader() {
	for {
		batch := h.take()
		if len(batch) == 0 {
			return
		}
		h.read(batch)
		_ = backoff.Sleep(h.ctx, readGap) // when the hub stops, nothing is taken
	}
}

// take is the next piece of what is wanted. When it is empty, there is a reader less.
func (h *Hub) take() []*command {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wanted = slices.DeleteFunc(h.wanted, func(c *command) bool { return c.watchers+c.waiters == 0 })
	if len(h.wanted) == 0 || h.ctx.Err() != nil {
		h.wanted, h.reading = nil, h.reading-1
		return nil
	}
	n := min(len(h.wanted), readSize)
	batch := h.wanted[:n:n]
	h.wanted = h.wanted[n:]
	for _, c := range batch {
		c.wanted = false
		c.begun++
	}
	return batch
}

// read reads commands and tells those who watch them.
func (h *Hub) read(batch []*command) {
	refs := make([]transitions.Ref, len(batch))
	for i, c := range batch {
		refs[i] = c.ref
	}
	ctx, cancel := context.WithTimeout(h.ctx, readBudget)
	defer cancel()
	records, err := h.config.Read(ctx, refs)
	if err != nil {
		if h.ctx.Err() == nil {
			h.config.Log.Warn("cannot read the commands that are watched", "commands", len(batch), "error", err)
		}
		err = &workflow.Error{Code: workflow.Unavailable, Message: "the command could not be read; try again", Cause: err}
		records = make([]*transitions.Record, len(batch))
	}
	now := h.config.Clock.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, c := range batch {
		c.update(records[i], err, now)
	}
}
