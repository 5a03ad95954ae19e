package feed

import (
	"context"
	"errors"
	"fmt"
	"sync"

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
func (r *follower) Close() { r.once.Do(func() { r.f.leave(r.t) }) }
