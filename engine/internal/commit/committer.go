package commit

import (
	"context"
	"slices"
)

// commitAll is a committer: it commits what waits in the queue, group by group.
func (p *Pipeline) commitAll(ctx context.Context) {
	var w work
	for p.queue.next(&w) {
		p.commit(ctx, w.ops)
	}
}

// admit drops the commands whose callers have left before anything was done for
// them, and tells those that have to go to the retry lane.
func (p *Pipeline) admit(ops []*op) (kept, retry []*op) {
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
	return p.retry.sort(stay)
}

// commit settles every op, or sends it to the retry lane: in as many groups as it takes
// for none to weigh too much.
func (p *Pipeline) commit(ctx context.Context, ops []*op) {
	for most := len(ops); len(ops) > 0; {
		n := min(p.fits(ops), most)
		rest := p.commitSome(ctx, ops[:n:n])
		if most = len(ops); len(rest) == n { // what was read is not what the first of them need
			most = max(n/2, 1)
		}
		ops = slices.Concat(rest, ops[n:])
	}
}

// commitSome settles ops or moves them to the retry lane. It returns those that did not fit in memory.
func (p *Pipeline) commitSome(ctx context.Context, ops []*op) (rest []*op) {
	ops, retry := p.admit(p.unbroken(ops))
	if len(ops) > 0 {
		rest = p.commitNow(ctx, ops)
	}
	// Only now: they must not overtake the commands before them.
	if len(rest) == 0 {
		p.retry.push(retry...)
		return nil
	}
	return append(rest, retry...)
}

func (p *Pipeline) commitNow(ctx context.Context, ops []*op) (rest []*op) {
	left, reaction, err := p.committers.run(ctx, ops, false, false)
	switch {
	case reaction == failureNone:
		p.retry.push(left.held...)
		return left.unread
	case reaction == blocked:
		p.retry.push(ops...)
	case reaction == headLocked:
		tenants := p.retry.markHeadsLocked(err)
		theirs := func(o *op) bool { return slices.Contains(tenants, o.p.Tenant) }
		p.retry.push(slices.DeleteFunc(slices.Clone(ops), func(o *op) bool { return !theirs(o) })...)
		p.commit(ctx, slices.DeleteFunc(ops, theirs))
	case (reaction == badCommand || reaction == retryGroup) && len(ops) > 1:
		// One command is at fault, or keeps losing: each half tells which.
		p.stats.splits.Add(1)
		p.commit(ctx, ops[:len(ops)/2])
		p.commit(ctx, ops[len(ops)/2:])
	default:
		p.fail(ops, err, reaction)
	}
	return nil
}
