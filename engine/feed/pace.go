package feed

import (
	"context"

	"github.com/pawlhq/pawl/outbox"
	"github.com/pawlhq/pawl/transitions"
)

// pace fits the number of transitions in a read to their size, so that large
// events do not fill the memory of everybody who catches up.
type pace struct {
	limit int // of the next read; 0 before the first
}

// read reads the next piece of a log.
func (p *pace) read(ctx context.Context, log *outbox.Table, tenant string, after int64) ([]transitions.Event, error) {
	if p.limit == 0 {
		p.limit = readSize / 16
	}
	events, err := log.After(ctx, tenant, after, p.limit)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	size := 0
	for i := range events {
		size += len(events[i].Payload)
	}
	p.fit(size)
	return events, nil
}

// fit sets the size of the next read, after one of so many bytes.
func (p *pace) fit(size int) {
	p.limit = max(1, min(2*p.limit, readSize, readBytes*p.limit/max(size, 1)))
}
