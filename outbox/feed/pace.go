package feed

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// pace fits the number of transitions in a read to their size, so that large
// events do not fill the memory of everybody who catches up.
type pace struct {
	limit int // of the next read; 0 before the first
}

// read reads the next piece of a log, whose head is known, or later. The positions
// of a log have no gaps: if the next one is missing, retention has removed its
// events, and the error is EventsGone.
func (p *pace) read(ctx context.Context, log *outbox.Table, tenant string, after, known int64) ([]transitions.Event, error) {
	if p.limit == 0 {
		p.limit = firstRead
	}
	events, err := log.After(ctx, tenant, after, p.limit)
	if err != nil {
		return nil, err
	}
	some := len(events) > 0
	if events = gapless(events, after); len(events) == 0 {
		if !some && known <= after {
			return nil, nil
		}
		first, err := log.First(ctx, tenant, after)
		if err == nil && first > after+1 {
			err = gone(after, first)
		}
		return nil, err // what has come since is in the next read
	}
	size := 0
	for i := range events {
		size += len(events[i].Payload)
	}
	p.fit(size)
	return events, nil
}

// gapless returns the events before the first position that is missing.
func gapless(events []transitions.Event, last int64) []transitions.Event {
	for i := range events {
		p := events[i].Position
		if p > last+1 {
			return events[:i]
		}
		last = p
	}
	return events
}

// gone says where a reader that is too late can go on.
func gone(after, first int64) error {
	return &workflow.Error{Code: workflow.EventsGone, Position: first, Message: fmt.Sprintf(
		"the events after position %d are no longer in the log; the first that is there has position %d: go on after %d", after, first, first-1)}
}

// fit sets the size of the next read, after one of so many bytes.
func (p *pace) fit(size int) {
	p.limit = max(1, min(8*p.limit, readSize, readBytes*p.limit/max(size, 1)))
}
