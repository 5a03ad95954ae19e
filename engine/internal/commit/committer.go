package commit

import (
	"context"
	"slices"
	"time"

	"github.com/pawlhq/pawl/workflow"
)

// committer commits what waits in its queue, group by group.
type committer struct {
	p     *Pipeline
	queue *queue
	r     *runner
}

func (c *committer) loop(ctx context.Context) {
	defer c.r.drop()
	buf := make([]*op, 0, c.p.config.Limits.GroupSize)
	for {
		ops := c.queue.take(buf[:0], c.p.config.Limits.GroupSize, c.p.config.Limits.GroupBytes)
		if ops == nil {
			return
		}
		begun := time.Now()
		c.commit(ctx, ops)
		c.p.stats.working.Add(int64(time.Since(begun)))
		clear(buf[:cap(buf)])
	}
}

// admit drops the commands whose callers have left before anything was done for
// them, and tells those that have to go to the retry lane.
func (p *Pipeline) admit(ops []*op) (kept, retry []*op) {
	kept = ops[:0]
	var routes map[uint64]bool // that have commands in retry
	for _, o := range ops {
		switch {
		case o.gone():
			o.settle(o.receipt, workflow.Errorf(workflow.TimedOut, "the caller left before the command was begun; nothing was done"))
		case o.p.Hook || routes[o.route] || p.retry.takes(o):
			if routes == nil {
				routes = map[uint64]bool{}
			}
			routes[o.route] = true
			retry = append(retry, o)
		default:
			kept = append(kept, o)
		}
	}
	return kept, retry
}

// commit settles every op, or sends it to the retry lane.
func (c *committer) commit(ctx context.Context, ops []*op) {
	ops, retry := c.p.admit(c.p.unbroken(ops))
	if len(ops) > 0 {
		c.commitNow(ctx, ops)
	}
	// Only now: they must not overtake the commands before them.
	c.p.retry.push(retry...)
}

func (c *committer) commitNow(ctx context.Context, ops []*op) {
	held, reaction, err := c.r.run(ctx, ops, false, false)
	switch {
	case reaction == failureNone:
		c.p.retry.push(held...)
	case reaction == blocked:
		c.p.retry.push(ops...)
	case reaction == headLocked:
		tenants := c.p.retry.markHeadsLocked(err)
		theirs := func(o *op) bool { return slices.Contains(tenants, o.p.Tenant) }
		c.p.retry.push(slices.DeleteFunc(slices.Clone(ops), func(o *op) bool { return !theirs(o) })...)
		c.commit(ctx, slices.DeleteFunc(ops, theirs))
	case (reaction == badCommand || reaction == retryGroup) && len(ops) > 1:
		// One command is at fault, or keeps losing: each half tells which.
		c.p.stats.splits.Add(1)
		c.commit(ctx, ops[:len(ops)/2])
		c.commit(ctx, ops[len(ops)/2:])
	default:
		c.p.fail(ops, err, reaction)
	}
}
