package watch

import (
	"time"

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

// update takes in what a read has found: the record, nil for none, or why it
// failed.
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
