package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/clock"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/loop"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Config is what a runner needs. Every field must be set but those that say otherwise.
type Config struct {
	Table   *Table
	Reader  *store.Reader
	Node    string // who holds leases
	Clock   *clock.Clock
	Plans   []*workflow.Migration // those that this node has; none: it does nothing
	Serving Serving
	Submit  func(ctx context.Context, list []*decide.Prepared) []transitions.Reply
	Log     *slog.Logger
	Every   time.Duration // between polls when there is nothing to do; 0: 5 s
	Lease   time.Duration // 0: 15 s
	Page    int           // instances that are asked for at once; 0: 10
}

// Serving is the nodes that serve, and what they do.
type Serving interface {
	// Lacking lists the nodes that do not know a version.
	Lacking(ctx context.Context, workflow string, version int) ([]string, error)
	// Begins reports whether new instances of a workflow begin with a version, on a node or in SQL. changing names a node that knows
	// the version and has not confirmed what they begin with; "" none.
	Begins(ctx context.Context, workflow string, version int) (begins bool, changing string, err error)
	// OpenChanges lists the transactions that may have written instances and have not ended.
	OpenChanges(ctx context.Context) ([]string, error)
	// StillOpen reports whether one of the transactions has not ended.
	StillOpen(ctx context.Context, list []string) (bool, error)
}

const (
	every = 5 * time.Second
	lease = 15 * time.Second
	// A page is a group of the pipeline: while it is written, the callers of its tenant wait for the head of their log.
	page = 10
	// A page that took longer than the quickest one of its batch has waited for others, most likely callers. The rest after it is so
	// many times what it waited, so that callers who come to be behind are left alone.
	restPerWait = 3
	budget      = 30 * time.Second // of what is not the instances' own
	// again is the delay before the next pass of a batch in which all instances wait.
	again = 2 * time.Second
	// closeWithin is how long to wait for other open transactions before the batch is released.
	closeWithin = time.Second
	closePoll   = 20 * time.Millisecond
	// mostSince bounds how many instances are counted that have begun since the batch was asked for.
	mostSince = 10_000
)

// Stats are counters of this node since its start.
type Stats struct{ Migrated, Skipped, Rejected, Failures int64 }

// Runner runs migrations, one at a time. Only Stop, Wake and Stats are safe for concurrent use.
type Runner struct {
	*loop.Loop
	config Config
	names  []string // of the plans

	migrated, skipped, rejected, failures atomic.Int64

	doing *batch          // nil: none
	last  *lastLook       // of that
	looks *store.OpenLook // of that
	quick time.Duration   // what the quickest page of that took; 0: there was none
}

// New makes a runner; Start begins its work.
func New(c Config) *Runner {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Every, every}, {&c.Lease, lease}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Page == 0 {
		c.Page = page
	}
	r := &Runner{Loop: loop.New(), config: c}
	for _, m := range c.Plans {
		r.names = append(r.names, planName(m.To.Name, m.From.Version, m.To.Version))
	}
	return r
}

// Start begins to work, where there is a plan.
func (r *Runner) Start() {
	if len(r.names) > 0 {
		r.Loop.Start(r.poll, r.giveBack)
	}
}

// Stats reads the counters.
func (r *Runner) Stats() Stats {
	return Stats{Migrated: r.migrated.Load(), Skipped: r.skipped.Load(), Rejected: r.rejected.Load(), Failures: r.failures.Load()}
}

// poll takes a turn, and says when to take the next one.
func (r *Runner) poll(ctx context.Context) time.Duration {
	wait, err := r.turn(ctx)
	switch {
	case errors.Is(err, errLost):
		r.doing, wait = nil, 0
	case err != nil && ctx.Err() == nil: // its lease runs out, and whoever comes first goes on
		r.doing = nil
		r.failures.Add(1)
		r.config.Log.Warn("a migration of instances failed, and is tried again", "error", err)
		wait = r.config.Every
	}
	return wait
}

// giveBack lets others have the batch at once.
func (r *Runner) giveBack(ctx context.Context) {
	if r.doing == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := r.give(ctx, 0, ""); err != nil && !errors.Is(err, errLost) {
		r.config.Log.Warn("a migration of instances could not be released; another node continues when its lease expires", "error", err)
	}
}

// turn takes a batch, or processes a page of the current one, and returns the delay before the next turn.
func (r *Runner) turn(ctx context.Context) (time.Duration, error) {
	if r.doing == nil {
		return r.claim(ctx)
	}
	b := r.doing
	begun := time.Now()
	if b.page == nil {
		if wait, err := r.next(ctx, b); err != nil || b.page == nil {
			return wait, err
		}
	}
	n := len(b.page)
	if err := r.take(ctx, b); err != nil {
		return 0, err
	}
	return r.rest(n, b.PerSecond, time.Since(begun)), nil
}

// rest is how long nothing is done after a page of so many that took so long.
func (r *Runner) rest(n, perSecond int, took time.Duration) time.Duration {
	if r.quick == 0 {
		r.quick = took
	}
	r.quick = min(r.quick, took)
	return max(time.Duration(n)*time.Second/time.Duration(perSecond)-took, took/4, restPerWait*(took-r.quick))
}

func (r *Runner) claim(ctx context.Context) (time.Duration, error) {
	asking, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	b, err := r.config.Table.claimOne(asking, r.config.Node, r.config.Lease, r.names)
	if err != nil || b == nil {
		return r.config.Every, err
	}
	r.doing, r.last, r.looks, r.quick = b, nil, nil, 0
	return 0, nil
}

// give lets others have the batch, from so long on.
func (r *Runner) give(ctx context.Context, wait time.Duration, why string) error {
	b := r.doing
	r.doing = nil
	return r.config.Table.write(ctx, b, r.config.Table.give, wait.Microseconds(), why, b.Waiting, asJSON(b.place))
}

// next finds the next page and records it. Without one the batch ends or is released.
func (r *Runner) next(ctx context.Context, b *batch) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	if lacking, err := r.config.Serving.Lacking(ctx, b.Workflow, b.To); err != nil {
		return 0, err
	} else if len(lacking) > 0 {
		return 0, r.give(ctx, again, HeldBy(lacking, b.To))
	}
	if wait, err := r.awaitOpen(ctx); wait > 0 || err != nil || r.doing == nil {
		return wait, err
	}
	found, err := r.look(ctx, b)
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		return 0, r.endLook(ctx, b)
	}
	t := r.config.Table
	if err := t.write(ctx, b, t.turnPage, asJSON(found), r.config.Lease.Microseconds(), asJSON(b.place)); err != nil {
		return 0, err
	}
	b.page = found
	return 0, nil
}

// look returns the next instances without a decision; none means that the pass is complete.
func (r *Runner) look(ctx context.Context, b *batch) ([]item, error) {
	if r.looks == nil {
		r.looks = &store.OpenLook{Workflow: b.Workflow, Definition: b.From, Before: b.CreatedAt, Scope: decide.MigrationScope(b.ID),
			Limit: min(r.config.Page, b.PerSecond), At: b.place.OpenPlace} // more would outlast the lease while it waits for the rate
	}
	if r.last != nil {
		r.looks.Before = time.Time{}
	}
	list, err := r.config.Reader.OpenInstances(ctx, r.looks)
	b.place.OpenPlace = r.looks.At
	found := make([]item, len(list))
	for n, i := range list {
		found[n] = item{Tenant: i.Tenant, ID: i.ID, State: i.State}
	}
	return found, err
}

// endLook ends the batch if the last pass found no instance, or begins the next pass: at once, if this one moved an instance.
func (r *Runner) endLook(ctx context.Context, b *batch) error {
	was, last := b.place, r.last
	b.Waiting, b.place, r.last = was.Waiting, place{}, nil
	r.looks.Again()
	switch {
	case was.Waiting > 0:
		return r.give(ctx, again, was.Why)
	case was.Taken > 0:
		return nil
	}
	begins, changing, err := r.config.Serving.Begins(ctx, b.Workflow, b.From)
	switch {
	case err != nil:
		return err
	case changing != "":
		return r.give(ctx, again, fmt.Sprintf("node %s has not confirmed which version new instances begin with", changing))
	case begins:
		// New instances still begin with the version: count how many have begun, and end the batch.
		since := 0
		look := &store.OpenLook{Workflow: b.Workflow, Definition: b.From, Scope: decide.MigrationScope(b.ID), Limit: previewed}
		for since < mostSince {
			list, err := r.config.Reader.OpenInstances(ctx, look)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				break
			}
			since += len(list)
		}
		return r.finish(ctx, b, since, fmt.Sprintf("new instances begin with version %d", b.From))
	case last != nil:
		return r.finish(ctx, b, 0, "")
	}
	open, err := r.config.Serving.OpenChanges(ctx)
	r.last = &lastLook{open: open, since: time.Now()}
	return err
}

func (r *Runner) finish(ctx context.Context, b *batch, since int, held string) error {
	r.doing = nil
	return r.config.Table.write(ctx, b, r.config.Table.finish, r.config.Clock.Now(), since, held)
}

// lastLook is the look at all instances of the version after a moment from which on none begins: whenever they have begun. It is made
// when every transaction has ended that was open at that moment, because one may commit an instance that was decided before.
type lastLook struct {
	open  []string  // those transactions; nil: they have ended
	since time.Time // the moment, by the clock of this process
}

// awaitOpen says when to ask again whether the transactions have ended that the last look waits for. It gives the batch back where
// that takes long.
func (r *Runner) awaitOpen(ctx context.Context) (time.Duration, error) {
	if r.last == nil || r.last.open == nil {
		return 0, nil
	}
	open, err := r.config.Serving.StillOpen(ctx, r.last.open)
	switch {
	case err != nil:
		return 0, err
	case !open:
		r.last.open = nil
		return 0, nil
	case time.Since(r.last.since) > closeWithin:
		return 0, r.give(ctx, again, "transactions are open that may have written an instance of the version; it ends when they have ended")
	}
	return closePoll, nil
}
