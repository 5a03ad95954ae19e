package inflight

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Config is what a runner needs. All of it is required.
type Config struct {
	Pool        *pgxpool.Pool           // for polls and leases, which must not wait for others
	Callers     *pgxpool.Pool           // for a caller who may have to wait for a lock
	In          func(sql string) string // puts the schema's name into a statement
	Node        string                  // who holds the leases: no other runner's, also not an earlier one's
	Definitions Definitions
	Workflows   []string // the names of those that are known here: others' commands are left alone
	Watchers    Watchers
	Clock       Clock                                  // by which commands are due
	Hint        func()                                 // there is due work that another node could take. It must not block
	Paused      func(all [][2]string, asked time.Time) // the workflows that are paused, each with its tenant before it. It must not block
	Log         *slog.Logger
	Workers     int           // attempts at once
	Lease       time.Duration // how long a lease lasts without a heartbeat
	Every       time.Duration // between two regular polls
}

// Definitions are the workflows that this node knows.
type Definitions interface {
	Versions(name string) []*workflow.Workflow // the newest first; nil: it is not known
	Horizons(name string) workflow.Horizons    // of its keys, resolved
}

// Pipeline commits what attempts came to.
type Pipeline interface {
	// Continue takes a command on that is in flight, and waits for room.
	Continue(ctx context.Context, p *transitions.Prepared) (transitions.Receipt, error)
}

// Watchers are told of commands that have changed. They must not block.
type Watchers interface {
	Changed(refs []transitions.Ref)
	Ended(ref transitions.Ref, answer transitions.Receipt)
}

// Clock is the database's, as this node follows it.
type Clock interface {
	Now() time.Time
	Set(theirs, sent, received time.Time) // what the database said between two times on this node's
}

const (
	dueGap      = 5 * time.Millisecond  // between two looks for what is due next
	lateness    = 2 * time.Second       // of a command that becomes due before others see it; later ones wait for the next tick
	dueBatch    = 500                   // scheduled commands in one claim
	dueAtOnce   = 2 * dueBatch          // scheduled commands being decided: the next are claimed meanwhile
	reportGap   = 50 * time.Millisecond // how long a report of progress waits for others
	retryGap    = time.Second           // until a lease or a give-back is written again that could not be
	maxProgress = 64 << 10              // bytes of one report
	budget      = 10 * time.Second      // of one message to the database
	lockWait    = 2 * time.Second       // of a cancel for whoever has locked the row
	stopGrace   = 2 * time.Second       // for attempts to end that were told to, and for the last give-backs
)

// Runner works on commands in flight. It is safe for concurrent use.
type Runner struct {
	config   Config
	pipeline Pipeline // once it is started
	sql      statements
	stats    stats

	woken  chan struct{} // one token: the looker should think again
	chores chan struct{} // one token: the keeper should think again

	work     sync.WaitGroup // the looker and the keeper
	endLook  context.CancelFunc
	endKeep  context.CancelFunc
	stopping chan struct{} // closed when Stop begins
	idle     chan struct{} // closed when nobody works any more, after that
	drain    sync.Once
	grace    time.Duration // stopGrace; tests have more patience
	contact  contact       // of the looker
	turns    turns         // of the looker
	lockWait time.Duration // of a cancel; likewise
	drained  chan struct{} // closed when the keeper should write what is left, and end

	mu       sync.Mutex
	started  bool
	ended    bool // Stop has begun
	looking  bool // the looker is there
	slots    slots
	held     map[transitions.Ref]*flight
	wanted   wanted
	vain     int       // claims in a row that got nothing
	seen     time.Time // scheduled commands due before it have been found, but for late ones
	reported []*flight // with progress to be stored
	reportAt time.Time // when it is
	backs    []*note   // to be given back
}

// New makes a runner; Start begins its work.
func New(c Config) *Runner {
	return &Runner{config: c, sql: newStatements(c.In), woken: make(chan struct{}, 1), chores: make(chan struct{}, 1),
		grace: stopGrace, lockWait: lockWait, stopping: make(chan struct{}), idle: make(chan struct{}), drained: make(chan struct{}), held: map[transitions.Ref]*flight{},
		contact: contact{lease: c.Lease, every: c.Every, wait: c.Lease},
		slots:   slots{workers: c.Workers, deciding: dueAtOnce, loads: map[activity]*load{}}}
}

// Start begins to poll for work. What comes of it goes to the pipeline.
func (r *Runner) Start(p Pipeline) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started || r.ended {
		return
	}
	r.pipeline, r.started, r.looking = p, true, true
	var looker, keeper context.Context
	looker, r.endLook = context.WithCancel(context.Background())
	keeper, r.endKeep = context.WithCancel(context.Background())
	r.work.Go(func() { r.watch(looker) })
	r.work.Go(func() { r.keep(keeper) })
}

// Stop takes no new work and waits for what is under way. What is not done shortly
// before ctx's deadline is cancelled, and given back; that is done by the deadline.
// Without one it begins when ctx ends. Stop returns when all is written; an attempt
// that ignores its context is left alone, and its lease will run out. It may be
// called twice.
func (r *Runner) Stop(ctx context.Context) {
	r.mu.Lock()
	if !r.started {
		r.ended = true
		r.mu.Unlock()
		return
	}
	if !r.ended {
		r.ended = true
		close(r.stopping)
		r.checkIdle()
	}
	unbegun := r.unbegun()
	r.mu.Unlock()
	for _, f := range unbegun {
		r.drop(f)
	}

	grace, waits, cancel := r.share(ctx)
	defer cancel()
	select {
	case <-r.idle:
	case <-waits.Done():
		r.interrupt(grace)
	}
	r.endLook()
	r.drain.Do(func() { close(r.drained) })
	enough := time.AfterFunc(grace, r.endKeep)
	r.work.Wait()
	enough.Stop()
	r.endKeep()
	r.config.Hint() // of what was given back
}

// share is how the time of Stop is used: until waits ends for what is under way, then
// a grace for it to end, a quarter for the commits that it waits for, and a grace for
// the last give-backs. These take no more than half of the time until a deadline.
func (r *Runner) share(ctx context.Context) (grace time.Duration, waits context.Context, cancel context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		waits, cancel = context.WithCancel(ctx)
		return r.grace, waits, cancel
	}
	grace = gracesOf(r.grace, time.Until(deadline))
	waits, cancel = context.WithDeadline(ctx, deadline.Add(-allGraces(grace)))
	return grace, waits, cancel
}

// gracesOf is the grace that there is time for.
func gracesOf(most, left time.Duration) time.Duration { return min(most, max(left, 0)/2*4/9) }

// allGraces is what Stop takes after it has waited.
func allGraces(grace time.Duration) time.Duration { return grace + grace/4 + grace }

// interrupt ends what is under way: first the attempts, then, a moment later,
// also the commits of outcomes that it waits for.
func (r *Runner) interrupt(grace time.Duration) {
	r.endLook()
	for _, f := range r.flights() {
		f.stop(transitions.ErrStopping)
	}
	if r.becomesIdle(grace) {
		return
	}
	for _, f := range r.flights() {
		f.quit()
	}
	if !r.becomesIdle(grace / 4) {
		for _, f := range r.flights() {
			r.config.Log.Warn("an attempt ignores that it was told to end; its lease will run out", f.attrs()...)
		}
	}
}

func (r *Runner) becomesIdle(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-r.idle:
		return true
	case <-timer.C:
		return false
	}
}

// checkIdle tells Stop when nobody works any more. r.mu is held.
func (r *Runner) checkIdle() {
	if !r.ended || r.looking || r.slots.busy > 0 {
		return
	}
	select {
	case <-r.idle:
	default:
		close(r.idle)
	}
}

// unbegun takes the commands that wait to be begun. r.mu is held.
func (r *Runner) unbegun() (list []*flight) {
	for _, f := range r.held {
		if f.begin != nil {
			f.begin = nil
			list = append(list, f)
		}
	}
	return list
}

func (r *Runner) flights() []*flight {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*flight, 0, len(r.held))
	for _, f := range r.held {
		list = append(list, f)
	}
	return list
}

// poke leaves a token in a channel that holds one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
