package relay

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/internal/pause"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const (
	readers    = 32                     // tenants that are read at once
	quietSteps = 5                      // seconds without news after which a reader ends
	keeps      = 2 * readers            // pieces that may wait for room while others read
	fairPieces = 4                      // pieces that a reader takes in while others wait
	retryRead  = 250 * time.Millisecond // doubled with each failure
	retryMax   = 30 * time.Second
)

// log is a tenant's log as it is read for one tenure. The fields are the
// tenure's, but for those that say otherwise.
type log struct {
	*stretch
	head    atomic.Int64  // as the database said it: there is something up to there
	heard   int64         // as somebody says
	reading bool          // a reader is at work
	holds   bool          // and is one of those that may be
	halt    func()        // ends it; nil: there was none yet
	queued  bool          // it waits for one
	rests   bool          // it was let go, and its time has not come
	taken   chan struct{} // tells the reader that its piece is taken in

	// The readers', of which a log has one at a time.
	failing bool          // the tenure knows that it cannot be read
	wait    time.Duration // until it is tried again
}

func newLog(s *stretch) *log { return &log{stretch: s, taken: make(chan struct{}, 1)} }

// behind reports whether there is something to read.
func (l *log) behind() bool { return max(l.head.Load(), l.heard) > l.read }

// piece is what a reader has read.
type piece struct {
	of     *log
	events []transitions.Logged
	wanted []bool // nil: all
}

// report is what a reader says of itself.
type report struct {
	of      *log
	news    readerNews
	failure string // why it cannot go on
}

type readerNews int

const (
	readerReads  readerNews = iota // it can go on, and could not before
	readerFailed                   // it cannot; others may read while it waits
	readerRested                   // it has waited, and is at its end
	readerEnded                    // there is no more
)

// reader reads a log. While a piece waits to be taken in it reads the next.
type reader struct {
	t       *tenure
	log     *log
	last    int64 // what was read
	waiting bool  // for a piece to be taken in
}

// follow reads a log after a position, until there is no more, or it cannot be
// read: then it waits a while, without keeping others from reading.
func (t *tenure) follow(ctx context.Context, l *log, after int64) {
	r := &reader{t: t, log: l, last: after}
	err := r.followOnce(ctx)
	if !r.settled(ctx) {
		return
	}
	if err == nil {
		r.reads(ctx)
		r.report(ctx, report{of: l, news: readerEnded})
		return
	}
	t.relay.config.Log.Warn("cannot read the log for a sink", "sink", t.sink.Name, "tenant", l.tenant, "after", r.last, "error", err)
	l.failing, l.wait = true, min(max(2*l.wait, retryRead), retryMax)
	r.report(ctx, report{of: l, news: readerFailed, failure: failureOf(err)})
	if pause.For(ctx, l.wait) {
		r.report(ctx, report{of: l, news: readerRested})
	}
}

// reads notes that the log can be read.
func (r *reader) reads(ctx context.Context) {
	if r.log.failing {
		r.log.failing, r.log.wait = false, 0
		r.report(ctx, report{of: r.log, news: readerReads})
	}
}

// report reports to the tenure.
func (r *reader) report(ctx context.Context, s report) {
	select {
	case r.t.reports <- s:
	case <-ctx.Done():
	}
}

// settled waits until the last piece is taken in.
func (r *reader) settled(ctx context.Context) bool {
	if r.waiting {
		select {
		case <-r.log.taken:
			r.waiting = false
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// followOnce reads until there is nothing more, or somebody else's turn, or an
// error.
func (r *reader) followOnce(ctx context.Context) error {
	f := r.t.relay.config.Follow(r.log.tenant, r.last)
	defer f.Close()
	for quiet, pieces := 0, 0; quiet < quietSteps && !r.yields(pieces, quiet); {
		batch, err := r.next(ctx, f)
		if err != nil {
			return err
		}
		if len(batch.Events) == 0 {
			quiet++
			continue
		}
		wanted, err := r.t.wanted(batch.Events)
		if err != nil {
			return err
		}
		if !r.settled(ctx) {
			return ctx.Err()
		}
		select {
		case r.t.pieces <- piece{r.log, batch.Events, wanted}:
		case <-ctx.Done():
			return ctx.Err()
		}
		r.waiting, r.last, quiet = true, batch.Last, 0
		pieces++
		r.reads(ctx)
	}
	return nil
}

// yields reports whether it is somebody else's turn: others wait, and enough was
// read, or all that is known of.
func (r *reader) yields(pieces, quiet int) bool {
	return r.t.crowded.Load() && (pieces >= fairPieces || pieces+quiet > 0 && r.log.head.Load() <= r.last)
}

// next waits for the next piece of the log for a while. When the database has
// said that there is one it does not wait: if nothing is found then, it is gone.
func (r *reader) next(ctx context.Context, f transitions.Follower) (batch transitions.Batch, err error) {
	if r.log.head.Load() > r.last {
		batch, err = f.Poll(ctx)
		if err == nil && len(batch.Events) == 0 {
			err = r.gap(ctx)
		}
	} else {
		step, cancel := context.WithTimeout(ctx, time.Second)
		batch, err = f.Next(step)
		cancel()
		if err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return transitions.Batch{}, nil
		}
	}
	if workflow.CodeOf(err) == workflow.EventsGone || err == nil && !gapless(batch.Events, r.last) {
		err = r.gap(ctx)
	}
	return batch, err
}

// gapless reports whether a piece of a log follows what was read last. The
// positions of a log have no gaps, so if it does not, something was removed.
func gapless(events []transitions.Logged, last int64) bool {
	for i := range events {
		if p := events[i].Position; p != last+1 && (i == 0 || p != last) {
			return false
		}
		last = events[i].Position
	}
	return true
}

// gap says that events are gone which the sink has not got.
func (r *reader) gap(ctx context.Context) error {
	var next int64
	if err := r.t.relay.config.Pool.QueryRow(ctx, r.t.relay.sql.first, r.log.tenant, r.last).Scan(&next); err != nil {
		return &workflow.Error{Code: workflow.Unavailable, Message: "the log could not be read", Cause: err}
	}
	return workflow.Errorf(workflow.NotFound,
		"the events after position %d are no longer in the outbox; the next that is there has position %d: move the cursor to %d to go on without them",
		r.last, next, next-1)
}

// wanted asks the filters for each event; nil: all are wanted.
func (t *tenure) wanted(events []transitions.Logged) (wanted []bool, err error) {
	s := t.sink
	if s.Wants == nil && s.Filter.All() {
		return nil, nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = workflow.Errorf(workflow.Internal, "the sink's filter panicked: %v", v)
			t.relay.config.Log.Error("a sink's filter panicked", "sink", t.sink.Name, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	wanted = make([]bool, len(events))
	for i := range events {
		e := &events[i].Event
		wanted[i] = s.Filter.Takes(e) && (s.Wants == nil || s.Wants(e))
	}
	return wanted, nil
}

// failureOf is the text of an error as it is stored and shown.
func failureOf(err error) string {
	text := fmt.Sprintf("the log cannot be read: %v", err)
	if e, ok := errors.AsType[*workflow.Error](err); ok {
		text = e.Message
	}
	return sink.Printable(text, sink.MaxMessage)
}
