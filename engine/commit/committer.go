package commit

import (
	"context"

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
	buf := make([]*op, 0, c.p.config.GroupSize)
	for {
		ops := c.queue.take(buf[:0], c.p.config.GroupSize, c.p.config.GroupBytes)
		if ops == nil {
			return
		}
		ops = c.p.admit(ops)
		if len(ops) > 0 {
			c.commit(ctx, ops)
		}
		clear(buf[:cap(buf)])
	}
}

// admit drops the commands whose callers have left before anything was done for
// them, and sends aside those that have to wait for others.
func (p *Pipeline) admit(ops []*op) []*op {
	kept := ops[:0]
	for _, o := range ops {
		switch {
		case o.gone():
			o.settle(o.receipt, workflow.Errorf(workflow.TimedOut, "the caller left before the command was begun; nothing was done"))
		case o.p.Hook || p.lane.has(o.route):
			p.lane.push(o)
		default:
			kept = append(kept, o)
		}
	}
	return kept
}

// commit settles every op, or sends it to the side lane.
func (c *committer) commit(ctx context.Context, ops []*op) {
	held, reaction, err := c.r.run(ctx, ops, false)
	switch reaction {
	case fine:
		c.p.lane.push(held...)
	case blocked:
		c.p.lane.push(ops...)
	case poison:
		if len(ops) > 1 {
			// Whose fault is it? Each half tells.
			c.p.stats.splits.Add(1)
			c.commit(ctx, ops[:len(ops)/2])
			c.commit(ctx, ops[len(ops)/2:])
			return
		}
		c.p.fail(ops, err, reaction)
	default:
		c.p.fail(ops, err, reaction)
	}
}
