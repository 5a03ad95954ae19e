package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// follower reads from a tail's ring, or from the table while it is behind the ring.
type follower struct {
	f     *Feed
	t     *tail
	last  int64
	pager pager
	once  sync.Once
}

// Next implements transitions.Follower.
func (r *follower) Next(ctx context.Context) (transitions.Batch, error) {
	for {
		if r.f.ctx.Err() != nil {
			return transitions.Batch{}, workflow.Errorf(workflow.ShuttingDown, "this node is stopping; continue on another node after position %d", r.last)
		}
		batch, inRing, changed := r.t.read(r.last)
		if len(batch.Events) > 0 {
			r.last = batch.Last
			return batch, nil
		}
		if !inRing {
			batch, err := r.table(ctx)
			if err != nil || len(batch.Events) > 0 {
				return batch, err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return transitions.Batch{}, ctx.Err()
		case <-r.f.ctx.Done():
		}
	}
}

// Poll implements transitions.Follower. At the end of the ring it reads the table, which may have
// events unknown to this node.
func (r *follower) Poll(ctx context.Context) (transitions.Batch, error) {
	batch, _, _ := r.t.read(r.last)
	if len(batch.Events) > 0 {
		r.last = batch.Last
		return batch, nil
	}
	return r.table(ctx)
}

func (r *follower) table(ctx context.Context) (transitions.Batch, error) {
	events, err := r.pager.read(ctx, r.f.config.Log, r.t.tenant, r.last, r.t.known())
	if err != nil {
		if workflow.CodeOf(err) == workflow.EventsGone || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return transitions.Batch{}, err
		}
		return transitions.Batch{}, &workflow.Error{Code: workflow.Unavailable, Message: "cannot read the log; try again",
			Cause: fmt.Errorf("follow the log of %q after %d: %w", r.t.tenant, r.last, err)}
	}
	if len(events) > 0 {
		r.last = events[len(events)-1].Position
	}
	return transitions.Batch{Events: render(events), Last: r.last, Head: max(r.t.known(), r.last)}, nil
}

// Close implements transitions.Follower.
func (r *follower) Close() {
	r.once.Do(func() {
		r.f.mu.Lock()
		defer r.f.mu.Unlock()
		if r.t.followers--; r.t.followers == 0 { // the last one
			delete(r.f.tails, r.t.tenant)
			r.t.stop()
		}
	})
}

// pager adapts the number of transitions per read to their size, so that large events do not fill
// the memory of many followers.
type pager struct {
	limit int // of the next read; 0 before the first
}

// read reads the next piece of a log that has reached the position known. Positions have no gaps:
// if the next one is missing, retention has removed it and read returns EventsGone.
func (p *pager) read(ctx context.Context, log *outbox.Table, tenant string, after, known int64) ([]transitions.Event, error) {
	p.limit = cmp.Or(p.limit, firstRead)
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
		return nil, readable(ctx, log, tenant, after) // later events are in the next read
	}
	size := 0
	for i := range events {
		size += len(events[i].Payload)
	}
	p.fit(size)
	return events, nil
}

func (p *pager) fit(size int) {
	p.limit = max(1, min(8*p.limit, readSize, readBytes*p.limit/max(size, 1)))
}

// readable returns nil if the log can be read from a position, or EventsGone with the position where it continues.
func readable(ctx context.Context, log *outbox.Table, tenant string, after int64) error {
	first, err := log.First(ctx, tenant, after)
	if err == nil && first > after+1 {
		err = &workflow.Error{Code: workflow.EventsGone, Position: first, Message: fmt.Sprintf(
			"the events after position %d are no longer in the log; the next position is %d: continue after %d", after, first, first-1)}
	}
	return err
}
