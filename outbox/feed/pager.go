package feed

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// pager adapts the number of transitions per read to their size, so that large events do not fill
// the memory of many followers.
type pager struct {
	limit int // of the next read; 0 before the first
}

// read reads the next piece of a log that has reached the position known. Positions have no gaps:
// if the next one is missing, retention has removed it and read returns EventsGone.
func (p *pager) read(ctx context.Context, log *outbox.Table, tenant string, after, known int64) ([]transitions.Event, error) {
	if p.limit == 0 {
		p.limit = firstRead
	}
	events, err := log.After(ctx, tenant, after, p.limit)
	if err != nil {
		return nil, err
	}
	some, last := len(events) > 0, after
	for i := range events {
		if events[i].Position > last+1 {
			events = events[:i]
			break
		}
		last = events[i].Position
	}
	if len(events) == 0 {
		if !some && known <= after {
			return nil, nil
		}
		first, err := log.First(ctx, tenant, after)
		if err == nil && first > after+1 {
			err = gone(after, first)
		}
		return nil, err // later events are in the next read
	}
	size := 0
	for i := range events {
		size += len(events[i].Payload)
	}
	p.fit(size)
	return events, nil
}

// gone returns the error for a reader that is too late, with the position where the log continues.
func gone(after, first int64) error {
	return &workflow.Error{Code: workflow.EventsGone, Position: first, Message: fmt.Sprintf(
		"the events after position %d are no longer in the log; the next position is %d: continue after %d", after, first, first-1)}
}

func (p *pager) fit(size int) {
	p.limit = max(1, min(8*p.limit, readSize, readBytes*p.limit/max(size, 1)))
}
