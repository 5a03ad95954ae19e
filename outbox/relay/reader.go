package relay

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const (
	quietSteps = 5                      // seconds without an event before a reader ends
	fairPieces = 4                      // pieces that a reader adds while others wait
	retryRead  = 250 * time.Millisecond // doubled after each failure
	retryMax   = 30 * time.Second
)

// piece is a part of a log that was read.
type piece struct {
	log    *tenantLog
	events []transitions.Logged
	wanted []bool // nil: all
}

// report is a message of a reader to its holder.
type report struct {
	log     *tenantLog
	event   readerEvent
	failure string // why the log cannot be read
}

type readerEvent int

const (
	readerRecovered readerEvent = iota // reading works again
	readerFailed                       // reading failed; other logs can be read meanwhile
	readerWaited                       // ended after its backoff
	readerEnded                        // nothing more to read
)

// reader reads a log. It reads ahead while a piece waits to be added.
type reader struct {
	logs    *logReaders
	log     *tenantLog
	last    int64 // last position that was read
	waiting bool  // for a piece to be added
}

// run reads until the end of the log. If reading fails, it waits without blocking other readers.
func (r *reader) run(ctx context.Context) {
	err := r.read(ctx)
	if !r.waitAdmitted(ctx) {
		return
	}
	if err == nil {
		r.recovered(ctx)
		r.report(ctx, readerEnded, "")
		return
	}
	l := r.log
	r.logs.relay.config.Log.Warn("cannot read the log for a sink", "sink", r.logs.sink.Name, "tenant", l.tenant, "after", r.last, "error", err)
	l.backoff = min(max(2*l.backoff, retryRead), retryMax)
	text := fmt.Sprintf("cannot read the log: %v", err)
	if e, ok := errors.AsType[*workflow.Error](err); ok {
		text = e.Message
	}
	r.report(ctx, readerFailed, sink.Printable(text, sink.MaxMessage))
	if backoff.Sleep(ctx, l.backoff) {
		r.report(ctx, readerWaited, "")
	}
}

// recovered reports that the log can be read again.
func (r *reader) recovered(ctx context.Context) {
	if r.log.backoff > 0 {
		r.log.backoff = 0
		r.report(ctx, readerRecovered, "")
	}
}

func (r *reader) report(ctx context.Context, event readerEvent, failure string) {
	select {
	case r.logs.reports <- report{r.log, event, failure}:
	case <-ctx.Done():
	}
}

// waitAdmitted waits until the last piece is added.
func (r *reader) waitAdmitted(ctx context.Context) bool {
	if r.waiting {
		select {
		case <-r.log.admitted:
			r.waiting = false
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// read reads until the end of the log, the turn of another log, or a failure.
func (r *reader) read(ctx context.Context) error {
	f := r.logs.relay.config.Feed.Follow(r.log.tenant, r.last)
	defer f.Close()
	for quiet, pieces := 0, 0; quiet < quietSteps; {
		share := pieces >= fairPieces || pieces+quiet > 0 && r.log.head.Load() <= r.last
		if share && r.logs.contended.Load() {
			break // other logs wait for a reader
		}
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
		if !r.waitAdmitted(ctx) {
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

// next waits a while for the next piece. If the database has reported events, it does not wait: if
// none are found then, they were removed.
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

// gap returns the error for events that retention removed before they were delivered.
func (r *reader) gap(ctx context.Context) error {
	next, err := r.logs.relay.config.Events.First(ctx, r.log.tenant, r.last)
	if err != nil {
		return &workflow.Error{Code: workflow.Unavailable, Message: "cannot read the log", Cause: err}
	}
	return workflow.Errorf(workflow.NotFound, "the events after position %d are no longer in the outbox; "+
		"the next stored position is %d: move the cursor to %d to skip them", r.last, next, next-1)
}

// filter applies the sink's filters to each event. It returns nil if all are wanted.
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
