package watch

import (
	"context"
	"slices"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// command is a watched command. It is guarded by Hub.mu.
type command struct {
	ref               transitions.Ref
	hash              uint64
	watchers, waiters int

	wanted bool // it is among those to be read
	begun  int  // reads that have begun
	read   int  // the newest of them that has ended
	now    standing
	record transitions.Record   // what was read last
	err    error                // why the newest read has no record
	answer *transitions.Receipt // the final one, if this node gave it

	awaited bool          // somebody waits for the next read, whatever it finds
	changed chan struct{} // closed and replaced when there is news
}

// standing is what must differ for a command to have changed.
type standing struct {
	revision int
	status   transitions.Status
	code     workflow.Code // of the error
}

// finished reports whether the command changes no more.
func (c *command) finished() bool {
	return c.read > 0 && (c.err == nil && !c.record.InFlight() || workflow.CodeOf(c.err) == workflow.KeyExpired)
}

// failed reports whether the newest read failed.
func (c *command) failed() bool { return workflow.CodeOf(c.err) == workflow.Unavailable }

// update takes in what a read has found: the record, nil for none, or why it failed.
func (c *command) update(r *transitions.Record, err error, now time.Time) {
	c.read = c.begun
	switch {
	case err != nil:
	case r == nil:
		err = transitions.UnknownCommand()
	case decide.Classify(r, r.Fingerprint, now) == decide.KeyGone:
		_, err = decide.KeyGone.Answer(r)
	default:
		c.record = *r
	}
	c.err = err
	was := c.now
	c.now = standing{c.record.Revision, c.record.Status, workflow.CodeOf(err)}
	if c.now != was || c.awaited {
		c.announce()
	}
	c.awaited = c.awaited && c.wanted // by who came after this read had begun
}

// announce wakes everybody who watches.
func (c *command) announce() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// outcome returns the final answer for a waiter, if it is known. after is the number of the read that had begun when the waiter came.
func (c *command) outcome(after int, now time.Time) (reply transitions.Reply, known bool) {
	switch {
	case c.answer != nil:
		reply.Receipt = *c.answer
	case c.err == nil && c.finished():
		reply.Receipt, reply.Err = decide.Classify(&c.record, c.record.Fingerprint, now).Answer(&c.record)
	case c.err != nil && c.read > after && !c.failed():
		reply.Err = c.err
	default:
		return reply, false
	}
	return reply, true
}

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
