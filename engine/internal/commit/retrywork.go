package commit

import (
	"context"
	"slices"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
)

// loop does one job after the other.
func (l *retryLane) loop(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { signal(l.work) })()
	for {
		j := l.next(ctx)
		if j == nil {
			return
		}
		l.do(ctx, j)
	}
}

func (l *retryLane) do(ctx context.Context, j *job) {
	ops := l.pipe.unbroken(j.ops())
	if len(ops) == 0 {
		l.done(j, jobResult{})
		return
	}
	left, reaction, err := l.pipe.retries.run(ctx, ops, true, j.alone)
	switch {
	case reaction == failureNone && len(left.unread) == len(ops):
		l.done(j, jobResult{tried: ops, apart: true})
	case reaction == failureNone:
		l.done(j, jobResult{tried: l.waiting(left.held, nil), untried: left.unread})
	case reaction == blocked && ctx.Err() == nil:
		l.done(j, jobResult{tried: l.waiting(ops, err), apart: true})
	case reaction == headLocked && ctx.Err() == nil:
		l.markHeadsLocked(err)
		l.done(j, jobResult{untried: l.waiting(ops, err)})
	case (reaction == badCommand || reaction == retryGroup) && len(ops) > 1:
		l.pipe.stats.splits.Add(1)
		l.done(j, jobResult{tried: ops, apart: true})
	default:
		l.pipe.fail(ops, err, reaction)
		l.done(j, jobResult{})
	}
}

// waiting refuses the commands that have waited long enough, and returns the
// others.
func (l *retryLane) waiting(ops []*op, err error) []*op {
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(ops), func(o *op) bool {
		if !o.gone() && now.Before(o.deadline) {
			return false
		}
		l.pipe.fail([]*op{o}, err, blocked)
		return true
	})
}

// turnAfter is how many tries in vain earn a queue a turn alone.
const turnAfter = 8

// again says what became of a command that a job had.
type again int

const (
	settled again = iota
	tried         // in vain
	untried       // through no fault of its own
)

// jobResult is what a job has not settled.
type jobResult struct {
	tried, untried []*op
	apart          bool // the group failed because of one of its commands
}

// done gives the queues of a job back.
func (l *retryLane) done(j *job, result jobResult) {
	for _, o := range result.tried {
		o.again = tried
	}
	for _, o := range result.untried {
		o.again = untried
	}
	l.q.mu.Lock()
	t := j.tenant
	if j.slow {
		l.jobs--
		t.jobs--
	}
	if j.probe {
		t.probing = false
		t.await(l)
	}
	for i, r := range j.queues {
		answerLeft(l.giveBack(j, r, j.parts[i], result.apart))
	}
	l.arrange(t)
	l.dropTenant(t)
	l.q.mu.Unlock()
	signal(l.work)
}

// giveBack puts the commands of a part that were not settled back to the front of their
// queue. Those whose callers have left meanwhile it returns.
func (l *retryLane) giveBack(j *job, r *routeQueue, part []*op, apart bool) (left []*op) {
	vain, rest := 0, 0
	for _, o := range slices.Backward(part) {
		was := o.again
		o.again = settled
		if was != settled && o.leaves() {
			left = append(left, o)
			was = settled
		}
		if was == settled {
			r.tenant.ages.remove(o)
			continue
		}
		if was == tried {
			vain++
		}
		rest++
		r.ops.pushFront(o)
		l.charge(o)
	}
	if r.tries++; vain == 0 {
		r.tries = 0
	}
	r.state = resting
	turn := r.tries%turnAfter == turnAfter-1 && l.alone < l.mostSlow()
	l.setAlone(r, vain > 0 && (apart || turn))
	switch {
	case r.ops.n == 0:
		l.drop(r)
	case r.tries == 0 || r.alone && !j.alone:
		l.makeReady(r, rest > 0)
	default:
		l.later.set(&r.alarm, time.Now().Add(backoff.Delay(lockRetry, r.tries)))
	}
	slices.Reverse(left)
	return left
}
