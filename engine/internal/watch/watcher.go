package watch

import (
	"context"
	"sync"

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

// Watch follows a command, whose name must be one that can be stored. What Next
// returns first was read after this call.
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
		seen, news, changed := w.unseen()
		if news {
			return seen.record, seen.err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return transitions.Record{}, ctx.Err()
		case <-w.h.ctx.Done():
		}
	}
}

// view is what a watcher sees.
type view struct {
	record transitions.Record
	err    error
}

// unseen is what the caller has not seen yet. If there is nothing, changed tells
// of the next.
func (w *watcher) unseen() (seen view, news bool, changed <-chan struct{}) {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	c := w.c
	switch {
	case c.read <= w.after:
		return view{}, false, c.changed
	case c.failed():
		if w.begun { // it waits for the database to come back
			return view{}, false, c.changed
		}
		w.begin()
		return view{err: c.err}, true, nil
	case c.err != nil:
		return view{err: c.err}, true, nil
	case w.begun && c.now == w.last:
		return view{}, false, c.changed
	}
	w.begun, w.last = true, c.now
	return view{record: c.record}, true, nil
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
