package watch

import (
	"context"
	"sync"
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// watcher implements transitions.Watcher.
type watcher struct {
	h     *Hub
	c     *command
	after int      // the read that had begun when this one began to watch
	begun bool     // it has returned a record
	last  standing // of that record
	once  sync.Once
}

// Watch follows a command, whose name must be one that can be stored. What Next returns first was read after this call.
func (h *Hub) Watch(ref transitions.Ref) transitions.Watcher {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.join(ref)
	c.watchers++
	w := &watcher{h: h, c: c}
	w.begin()
	return w
}

// begin has the command read. h.mu is held.
func (w *watcher) begin() {
	w.after, w.c.awaited = w.c.begun, true
	w.h.want(w.c)
}

// Next implements transitions.Watcher.
func (w *watcher) Next(ctx context.Context) (transitions.Record, error) {
	for {
		if w.h.ctx.Err() != nil {
			return transitions.Record{}, errStopping()
		}
		record, changed, err := w.unseen()
		if changed == nil {
			return record, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return transitions.Record{}, ctx.Err()
		case <-w.h.ctx.Done():
		}
	}
}

// unseen is what the caller has not seen yet. If there is nothing, changed is not nil, and tells of the next.
func (w *watcher) unseen() (r transitions.Record, changed <-chan struct{}, err error) {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	c := w.c
	switch {
	case c.read <= w.after:
		return r, c.changed, nil
	case c.failed():
		if w.begun { // it waits for the database to come back
			return r, c.changed, nil
		}
		w.begin()
		return r, nil, c.err
	case c.err != nil:
		return r, nil, c.err
	case w.begun && c.now == w.last:
		return r, c.changed, nil
	}
	w.begun, w.last = true, c.now
	return c.record, nil, nil
}

// Close implements transitions.Watcher.
func (w *watcher) Close() {
	w.once.Do(func() {
		w.h.mu.Lock()
		defer w.h.mu.Unlock()
		w.c.watchers--
		w.h.left(w.c)
	})
}

func errStopping() error {
	return workflow.Errorf(workflow.ShuttingDown, "this node is stopping; ask another about the command")
}

// Await returns a command's final answer, as a duplicate of it would get it from then on. The name must be one that can be stored.
//
// Errors: CommandNotFound, KeyExpired, ShuttingDown, and TimedOut when ctx ends first.
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
