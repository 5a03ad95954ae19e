package commit

import (
	"context"
	"slices"
)

// commitAll is a committer: it commits what waits in the queue, group by group.
func (pipe *Pipeline) commitAll(ctx context.Context) {
	var w work
	for pipe.queue.next(&w) {
		pipe.commit(ctx, w.ops)
	}
}

// admit drops the commands whose callers have left before anything was done for
// them, and tells those that have to go to the retry lane.
func (pipe *Pipeline) admit(ops []*op) (kept, retry []*op) {
	stay := ops[:0]
	var left []*op
	for _, o := range ops {
		if o.leaves() {
			left = append(left, o)
		} else {
			stay = append(stay, o)
		}
	}
	answerLeft(left)
	return pipe.retry.sort(stay)
}

// commit settles every op, or sends it to the retry lane: in as many groups as it takes
// for none to weigh too much.
func (pipe *Pipeline) commit(ctx context.Context, ops []*op) {
	for most := len(ops); len(ops) > 0; {
		n := min(pipe.fits(ops), most)
		rest := pipe.commitSome(ctx, ops[:n:n])
		if most = len(ops); len(rest) == n { // what was read is not what the first of them need
			most = max(n/2, 1)
		}
		ops = slices.Concat(rest, ops[n:])
	}
}

// commitSome settles ops or moves them to the retry lane. It returns those that did not fit in memory.
func (pipe *Pipeline) commitSome(ctx context.Context, ops []*op) (rest []*op) {
	ops, retry := pipe.admit(pipe.unbroken(ops))
	if len(ops) > 0 {
		rest = pipe.commitNow(ctx, ops)
	}
	// Only now: they must not overtake the commands before them.
	if len(rest) == 0 {
		pipe.retry.push(retry...)
		return nil
	}
	return append(rest, retry...)
}

func (pipe *Pipeline) commitNow(ctx context.Context, ops []*op) (rest []*op) {
	left, reaction, err := pipe.committers.run(ctx, ops, false, false)
	switch {
	case reaction == failureNone:
		pipe.retry.push(left.held...)
		return left.unread
	case reaction == blocked:
		pipe.retry.push(ops...)
	case reaction == headLocked:
		tenants := pipe.retry.markHeadsLocked(err)
		theirs := func(o *op) bool { return slices.Contains(tenants, o.p.Tenant) }
		pipe.retry.push(slices.DeleteFunc(slices.Clone(ops), func(o *op) bool { return !theirs(o) })...)
		pipe.commit(ctx, slices.DeleteFunc(ops, theirs))
	case (reaction == badCommand || reaction == retryGroup) && len(ops) > 1:
		// One command is at fault, or keeps losing: each half tells which.
		pipe.stats.splits.Add(1)
		pipe.commit(ctx, ops[:len(ops)/2])
		pipe.commit(ctx, ops[len(ops)/2:])
	default:
		pipe.fail(ops, err, reaction)
	}
	return nil
}
