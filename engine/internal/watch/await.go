package watch

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Await returns a command's final answer, as a duplicate of it would get it from
// then on. The name must be one that can be stored.
//
// Errors: CommandNotFound, KeyExpired, ShuttingDown, and TimedOut when ctx ends
// first.
func (h *Hub) Await(ctx context.Context, ref transitions.Ref) (transitions.Receipt, error) {
	h.mu.Lock()
	c := h.join(ref)
	c.waiters++
	after := c.begun
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		c.waiters--
		h.left(c)
	}()
	// The end of a command on this node arrives without a read. One that ended before the call, or ends on another node without a
	// notification, must be read.
	read := time.NewTimer(patience)
	defer read.Stop()
	for {
		h.mu.Lock()
		reply, known := c.outcome(after, h.config.Clock.Now())
		changed := c.changed
		h.mu.Unlock()
		if known {
			return reply.Receipt, reply.Err
		}
		select {
		case <-changed:
		case <-read.C:
			h.mu.Lock()
			c.awaited = true
			h.want(c)
			h.mu.Unlock()
		case <-ctx.Done():
			return transitions.Receipt{}, workflow.Errorf(workflow.TimedOut, "the command is not finished yet; ask again, or wait for longer")
		case <-h.ctx.Done():
			return transitions.Receipt{}, errStopping()
		}
	}
}
