package inflight

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Config is what a runner needs. All of it is required but the tracer.
type Config struct {
	Pool        *pgxpool.Pool           // for polls and leases, which must not wait for others
	Callers     *pgxpool.Pool           // for a caller who may have to wait for a lock
	In          func(sql string) string // puts the schema's name into a statement
	Node        string                  // the holder of the leases: unique among all runners, also earlier ones
	Definitions Definitions
	Workflows   []string // the names of those that are known here: others' commands are left alone
	Watchers    Watchers
	Clock       Clock                                  // by which commands are due
	Hint        func()                                 // there is due work that another node could take. It must not block
	Paused      func(all [][2]string, asked time.Time) // the workflows that are paused, each with its tenant before it. It must not block
	Log         *slog.Logger
	Tracer      tracing.Tracer // nil: none
	Workers     int            // attempts at once
	Lease       time.Duration  // how long a lease lasts without a heartbeat
	Every       time.Duration  // between two regular polls

	Recheck func(ctx context.Context, c *transitions.Command) error // see engine.Config; nil: none
}

// Definitions are the workflows that this node knows.
type Definitions interface {
	Versions(name string) []*workflow.Workflow // the newest first; nil: it is not known
	Horizons(name string) workflow.Horizons    // of its keys, resolved
}

// Pipeline commits what attempts came to.
type Pipeline interface {
	// Continue takes a command on that is in flight, and waits for room.
	Continue(ctx context.Context, p *decide.Prepared) (transitions.Receipt, error)
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

// claimRetry is the delay after a poll whose candidates were all claimed by others or locked, in addition to dueGap.
var claimRetry = workflow.Retry{First: 2 * dueGap, Max: 256 * dueGap}

const (
	dueGap      = 5 * time.Millisecond  // between two polls for what is due next
	lateness    = 2 * time.Second       // of a command that becomes due before others see it; later ones wait for the next regular poll
	dueBatch    = 500                   // scheduled commands that one poll takes in the order in which they are due
	resumeBatch = 1000                  // commands made due at once whose workflow is resumed
	dueAtOnce   = 2 * dueBatch          // scheduled commands being decided: the next are claimed meanwhile
	reportGap   = 50 * time.Millisecond // how long a report of progress waits for others, at least
	reportShare = 20                    // of the time one part: for what takes long to write a report waits longer
	retryGap    = time.Second           // until a lease or a give-back is written again that could not be
	maxProgress = 64 << 10              // bytes of one report
	budget      = 10 * time.Second      // of one message to the database
	lockWait    = 2 * time.Second       // of a cancel for whoever has locked the row
	stopGrace   = 2 * time.Second       // for attempts to end that were told to, and for the last give-backs
)

// Runner works on commands in flight. It is safe for concurrent use.
type Runner struct {
	config    Config
	pipeline  Pipeline // once it is started
	sql       *store.Flights
	limits    map[activity]int // of the activities that are known
	known     []string         // the workflows that are, and their versions
	stats     counters
	durations durations

	work     sync.WaitGroup // the poller and the keeper
	stop     stop
	lockWait time.Duration // of a cancel; tests have more patience

	mu      sync.Mutex
	started bool
	ended   bool // Stop has begun
	slots   slots
	held    map[transitions.Ref]*flight
	poller  poller
	keeper  keeper
}

// poller is of the one goroutine that polls for due work and claims it.
type poller struct {
	woken   chan struct{} // one token: it should think again
	end     context.CancelFunc
	contact contact
	turns   turns // of work
	later   turns // of scheduled commands
	bounds  bounds
	pauses  pauses

	// Guarded by Runner.mu:
	ambiguous   []*leaseUpdate // what commits and claims may have leased whose answers were lost
	running     bool
	wanted      wanted
	emptyClaims int // claims in a row that got nothing
}

// keeper is of the one goroutine that prolongs leases and gives commands back.
type keeper struct {
	woken   chan struct{} // one token: it should think again
	end     context.CancelFunc
	drain   sync.Once
	drained chan struct{} // closed when it should write what is left, and end

	// Guarded by Runner.mu:
	reported []*flight      // with progress to be stored
	took     time.Duration  // by the newest write
	reportAt time.Time      // when it is
	returns  []*leaseUpdate // to be given back
}

// stop is how a runner ends.
type stop struct {
	begun chan struct{} // closed when Stop begins
	idle  chan struct{} // closed when nobody works any more, after that
	grace time.Duration // stopGrace; tests have more patience
}

// New makes a runner; Start begins its work.
func New(c Config) *Runner {
	known, limits := knownOf(&c)
	return &Runner{config: c, sql: store.NewFlights(c.In), limits: limits, known: known, lockWait: lockWait,
		held: map[transitions.Ref]*flight{}, stop: stop{begun: make(chan struct{}), idle: make(chan struct{}), grace: stopGrace},
		poller: poller{woken: make(chan struct{}, 1), contact: contact{lease: c.Lease, every: c.Every, wait: c.Lease},
			turns: turns{kind: store.Turn}, later: turns{kind: store.LaterTurn}},
		keeper: keeper{woken: make(chan struct{}, 1), drained: make(chan struct{})},
		slots:  slots{workers: c.Workers, deciding: dueAtOnce, loads: map[activity]*load{}}}
}

// Start begins to poll for work, and submits the results to the pipeline.
func (r *Runner) Start(p Pipeline) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started || r.ended {
		return
	}
	r.pipeline, r.started, r.poller.running = p, true, true
	var poller, keeper context.Context
	poller, r.poller.end = context.WithCancel(context.Background())
	keeper, r.keeper.end = context.WithCancel(context.Background())
	r.work.Go(func() { r.pollLoop(poller) })
	r.work.Go(func() { r.keep(keeper) })
}

// Stop takes no new work and waits for running attempts. Shortly before ctx's deadline it cancels those that still run and releases their
// leases; all is done by the deadline. Without a deadline this begins when ctx ends. Stop returns when all updates are written. An attempt
// that ignores its context is abandoned, and its lease expires. Stop may be called twice.
func (r *Runner) Stop(ctx context.Context) {
	r.mu.Lock()
	if !r.started {
		r.ended = true
		r.mu.Unlock()
		return
	}
	if !r.ended {
		r.ended = true
		close(r.stop.begun)
		r.checkIdle()
	}
	unbegun := r.unbegun()
	r.mu.Unlock()
	for _, f := range unbegun {
		r.returnUnbegun(f)
	}

	grace, waits, cancel := r.share(ctx)
	defer cancel()
	select {
	case <-r.stop.idle:
	case <-waits.Done():
		r.interrupt(grace)
	}
	r.poller.end()
	r.keeper.drain.Do(func() { close(r.keeper.drained) })
	enough := time.AfterFunc(grace, r.keeper.end)
	r.work.Wait()
	enough.Stop()
	r.keeper.end()
	r.config.Hint() // of what was given back
}

// share is how the time of Stop is used: until waits ends for what is under way, then a grace for it to end, a quarter for the commits that
// it waits for, and a grace for the last give-backs. These take no more than half of the time until a deadline.
func (r *Runner) share(ctx context.Context) (grace time.Duration, waits context.Context, cancel context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		waits, cancel = context.WithCancel(ctx)
		return r.stop.grace, waits, cancel
	}
	grace = gracesOf(r.stop.grace, time.Until(deadline))
	waits, cancel = context.WithDeadline(ctx, deadline.Add(-allGraces(grace)))
	return grace, waits, cancel
}

// gracesOf is the grace that there is time for.
func gracesOf(most, left time.Duration) time.Duration { return min(most, max(left, 0)/2*4/9) }

// allGraces is what Stop takes after it has waited.
func allGraces(grace time.Duration) time.Duration { return grace + grace/4 + grace }

// interrupt ends what is under way: first the attempts, then, a moment later, also the commits of outcomes that it waits for.
func (r *Runner) interrupt(grace time.Duration) {
	r.poller.end()
	for _, f := range r.flights() {
		f.stop(decide.ErrStopping)
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
	case <-r.stop.idle:
		return true
	case <-timer.C:
		return false
	}
}

// checkIdle signals Stop when no attempt runs. r.mu is held.
func (r *Runner) checkIdle() {
	if !r.ended || r.poller.running || r.slots.busy > 0 {
		return
	}
	select {
	case <-r.stop.idle:
	default:
		close(r.stop.idle)
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
	return slices.Collect(maps.Values(r.held))
}

// poke leaves a token in a channel that holds one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
