package replay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlhq/pawl/internal/pause"
	"github.com/pawlhq/pawl/transitions"
)

// caller is one of the two who submit the same batch.
type caller struct {
	target   Target
	patience time.Duration

	replies   []transitions.Reply // the last answer to each command
	overtaken int                 // commands that were done before one that was submitted ahead of them
	again     int                 // commands that were submitted again
	err       error               // why it gave up
}

// submit asks until every command has an answer that lasts.
func (c *caller) submit(ctx context.Context, cs []transitions.Command) {
	c.replies = make([]transitions.Reply, len(cs))
	open := make([]int, len(cs))
	for i := range open {
		open[i] = i
	}
	progress := time.Now()
	for try := 0; ; try++ {
		left := c.ask(ctx, cs, open)
		if c.err != nil || len(left) == 0 {
			return
		}
		if len(left) < len(open) {
			progress, try = time.Now(), 0
		}
		open = left
		c.again += len(open)
		last := c.replies[open[0]].Err
		if time.Since(progress) > c.patience {
			c.err = fmt.Errorf("replay: no answer to %d events for %v: %w", len(open), c.patience, last)
			return
		}
		if !pause.For(ctx, backoff(try)) {
			c.err = context.Cause(ctx)
			return
		}
	}
}

// ask submits the open commands once, and returns those that are still open.
func (c *caller) ask(ctx context.Context, cs []transitions.Command, open []int) (left []int) {
	asked := cs
	if len(open) < len(cs) {
		asked = make([]transitions.Command, len(open))
		for n, i := range open {
			asked[n] = cs[i]
		}
	}
	replies := c.target.SubmitMany(ctx, asked)
	if len(replies) != len(asked) {
		c.err = fmt.Errorf("replay: the target gave %d answers to %d events", len(replies), len(asked))
		return nil
	}
	waiting := "" // the case whose earlier event is still open
	for n, i := range open {
		reply := replies[n]
		c.replies[i] = reply
		switch {
		case misplaced(reply.Err):
			c.err = fmt.Errorf("replay: case %s: %w", cs[i].BusinessKey, reply.Err)
			return nil
		case retryable(reply.Err):
			waiting = cs[i].BusinessKey
			left = append(left, i)
		case waiting == cs[i].BusinessKey && reply.Err == nil && !reply.Receipt.Replayed:
			c.overtaken++
		}
	}
	return left
}

// backoff grows from about 10 milliseconds to about 2 seconds, with jitter.
func backoff(try int) time.Duration {
	limit := 10 * time.Millisecond << min(try, 8)
	return min(limit, 2*time.Second)/2 + rand.N(limit/2)
}
