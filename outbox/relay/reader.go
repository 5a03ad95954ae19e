package relay

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/pause"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const (
	quietSteps = 5                      // seconds without an event after which a reader ends
	fairPieces = 4                      // pieces that a reader takes in while others wait
	retryRead  = 250 * time.Millisecond // doubled with each failure
	retryMax   = 30 * time.Second
)

// readFailures is how the reading of a log fails.
type readFailures struct {
	known bool          // the holder knows that it cannot be read
	wait  time.Duration // until it is tried again
}

// piece is what a reader has read.
type piece struct {
	log    *tenantLog
	events []transitions.Logged
	wanted []bool // nil: all
}

// report is what a reader says of itself.
type report struct {
	log     *tenantLog
	event   readerEvent
	failure string // why the log cannot be read
}

type readerEvent int

const (
	readerRecovered readerEvent = iota // it can read, and could not before
	readerFailed                       // it cannot; others may read while it waits
	readerWaited                       // it has waited, and ends
	readerEnded                        // there is nothing more to read
)

// reader reads a log. While a piece waits to be taken in it reads the next.
type reader struct {
	logs    *logReaders
	log     *tenantLog
	last    int64 // the last position that was read
	waiting bool  // for a piece to be taken in
}

// run reads until there is nothing more, or the log cannot be read: then it waits a
// while, without keeping others from reading.
func (r *reader) run(ctx context.Context) {
	err := r.read(ctx)
	if !r.settled(ctx) {
		return
	}
	if err == nil {
		r.recovered(ctx)
		r.report(ctx, readerEnded, "")
		return
	}
	l := r.log
	r.logs.relay.config.Log.Warn("cannot read the log for a sink", "sink", r.logs.sink.Name, "tenant", l.tenant, "after", r.last, "error", err)
	l.failures.known, l.failures.wait = true, min(max(2*l.failures.wait, retryRead), retryMax)
	r.report(ctx, readerFailed, failureOf(err))
	if pause.For(ctx, l.failures.wait) {
		r.report(ctx, readerWaited, "")
	}
}

// recovered notes that the log can be read.
func (r *reader) recovered(ctx context.Context) {
	if r.log.failures.known {
		r.log.failures = readFailures{}
		r.report(ctx, readerRecovered, "")
	}
}

// report reports to the holder.
func (r *reader) report(ctx context.Context, event readerEvent, failure string) {
	select {
	case r.logs.reports <- report{r.log, event, failure}:
	case <-ctx.Done():
	}
}

// settled waits until the last piece is taken in.
func (r *reader) settled(ctx context.Context) bool {
	if r.waiting {
		select {
		case <-r.log.admitted:
			r.waiting = false
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// read reads until there is nothing more, or it is another log's turn, or it fails.
func (r *reader) read(ctx context.Context) error {
	f := r.logs.relay.config.Feed.Follow(r.log.tenant, r.last)
	defer f.Close()
	for quiet, pieces := 0, 0; quiet < quietSteps && !r.mustYield(pieces, quiet); {
		batch, err := r.next(ctx, f)
		if err != nil {
			return err
		}
		if len(batch.Events) == 0 {
			quiet++
			continue
		}
		wanted, err := r.logs.filter(batch.Events)
		if err != nil {
			return err
		}
		if !r.settled(ctx) {
			return ctx.Err()
		}
		select {
		case r.logs.pieces <- piece{r.log, batch.Events, wanted}:
		case <-ctx.Done():
			return ctx.Err()
		}
		r.waiting, r.last, quiet = true, batch.Last, 0
		pieces++
		r.recovered(ctx)
	}
	return nil
}

// mustYield reports whether it is another log's turn: others wait, and enough was
// read, or everything that is known of.
func (r *reader) mustYield(pieces, quiet int) bool {
	return r.logs.contended.Load() && (pieces >= fairPieces || pieces+quiet > 0 && r.log.head.Load() <= r.last)
}

// next waits for the next piece of the log for a while. Where the database has said
// that there is one it does not wait: if nothing is there then, events are gone.
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
	if workflow.CodeOf(err) == workflow.EventsGone {
		err = r.gap(ctx)
	}
	return batch, err
}

// gap is the error that events are gone which the sink has not got.
func (r *reader) gap(ctx context.Context) error {
	next, err := r.logs.relay.config.Events.First(ctx, r.log.tenant, r.last)
	if err != nil {
		return &workflow.Error{Code: workflow.Unavailable, Message: "the log could not be read", Cause: err}
	}
	return workflow.Errorf(workflow.NotFound, "the events after position %d are no longer in the outbox; "+
		"the next that is there has position %d: move the cursor to %d to go on without them", r.last, next, next-1)
}

// filter asks the sink's filters about each event; nil: all are wanted.
func (r *logReaders) filter(events []transitions.Logged) (wanted []bool, err error) {
	s := r.sink
	if s.Wants == nil && s.Filter.All() {
		return nil, nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = workflow.Errorf(workflow.Internal, "the sink's filter panicked: %v", v)
			r.relay.config.Log.Error("a sink's filter panicked", "sink", s.Name, "panic", v, "stack", string(debug.Stack()))
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
