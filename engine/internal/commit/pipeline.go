package commit

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/clock"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Config configures a pipeline. All fields are required unless noted.
type Config struct {
	Limits      Limits
	Connect     Connect
	Pooled      bool   // the database is behind a pooler in transaction mode
	Schema      string // of Pawl's tables
	Statements  *Statements
	Definitions Definitions
	Clock       *clock.Clock
	Committed   Committed
	Paused      func(tenant, workflow string) bool // whether a workflow is paused; nil: never
	Flights     Flights                            // nil: none on this node
	Node        string                             // holds the leases of accepted activities
	Lease       time.Duration                      // of accepted activities
	Log         *slog.Logger
	Tracer      tracing.Tracer // nil: none
}

// Committed is called after each commit that advanced a tenant's log to head. It must not block. events returns the events of the commit,
// and is valid during the call.
type Committed func(tenant string, head int64, events func() []transitions.Event)

// Connect opens a connection, with a name for pg_stat_activity.
type Connect func(ctx context.Context, name string) (*pgx.Conn, error)

// Definitions provides the workflows of this node.
type Definitions interface {
	// Find returns a version of a workflow, the newest for 0; nil: it is not known.
	Find(name string, version int) *workflow.Workflow
	// Horizons are how long the keys of a workflow are good for, resolved.
	Horizons(name string) workflow.Horizons
}

// Limits bounds the size of a pipeline and the duration of its steps.
type Limits struct {
	Committers   int
	RetryWorkers int
	QueueSize    int           // commands that wait, in the retry lane too
	QueueBytes   int           // estimated bytes of those
	QueueWait    time.Duration // estimated waiting time for a committer; 0: no limit
	GroupSize    int           // commands
	GroupBytes   int           // estimated, with the data of the instances
	LockWait     time.Duration // for locks, before a command is refused
	Outage       time.Duration // for a lost database
	HookTimeout  time.Duration // of the user's SQL

	// OneTenantPerStatement keeps the tenants of a group apart: no statement has rows of two.
	OneTenantPerStatement bool
}

const (
	// lock_timeout of statements: short for a committer, longer for the retry lane.
	committerLockTimeout = 100 * time.Millisecond
	retryLockTimeout     = 500 * time.Millisecond
	headLockTimeout      = time.Second // as long as a commit may take
	// rollbackTimeout bounds a rollback after the context has ended.
	rollbackTimeout = 5 * time.Second
)

// Delays before a group runs again, a connection is opened again, and commands in the retry lane try a lock again.
var (
	groupRetry = workflow.Retry{First: 2 * time.Millisecond, Max: 512 * time.Millisecond}
	dialRetry  = workflow.Retry{First: 8 * time.Millisecond, Max: 512 * time.Millisecond}
	lockRetry  = workflow.Retry{First: 2 * time.Millisecond, Max: 64 * time.Millisecond}
)

// Pipeline commits commands.
type Pipeline struct {
	config Config
	stmts  *Statements
	log    *slog.Logger
	stats  stats
	scopes scopes
	sizes  dataSizes
	gate   gate

	queue      *queue
	committers *runners
	retry      *retryLane
	retries    *runners

	stop       context.CancelFunc // cancels running groups
	committing sync.WaitGroup     // committers
	retrying   sync.WaitGroup     // workers of the retry lane
	ending     sync.Once
	ended      chan struct{}
}

// New returns a pipeline that is not started.
func New(c Config) *Pipeline {
	pipe := &Pipeline{config: c, stmts: c.Statements, log: c.Log, stop: func() {}, ended: make(chan struct{}), queue: newQueue(c.Limits)}
	pipe.retry = &retryLane{pipe: pipe, q: pipe.queue, routes: map[uint64]*routeQueue{}, tenants: map[string]*tenantQueues{},
		work: make(chan struct{}, 1), idle: make(chan struct{})}
	pipe.queue.weight, pipe.queue.lane = pipe.weight, pipe.retry
	pipe.committers = pipe.newRunners(c.Limits.Committers, "committer", committerLockTimeout)
	pipe.retries = pipe.newRunners(c.Limits.RetryWorkers, "retry lane", retryLockTimeout)
	return pipe
}

func (pipe *Pipeline) newRunner(name string, lockTimeout time.Duration) *runner {
	r := &runner{pipe: pipe, name: name, lockTimeout: lockTimeout}
	r.local.SQL = r.settings(true)
	return r
}

// Start connects the first committer, which checks the database, and starts the workers. ctx bounds only the start.
func (pipe *Pipeline) Start(ctx context.Context) error {
	lifetime, stop := context.WithCancel(context.Background())
	pipe.stop = stop
	defer context.AfterFunc(ctx, stop)()
	first := pipe.committers.takeAny()
	err := first.dial(lifetime)
	pipe.committers.put(first)
	if err != nil {
		stop()
		return err
	}
	for range pipe.config.Limits.Committers {
		pipe.committing.Go(func() {
			var w work
			for pipe.queue.next(&w) {
				pipe.commit(lifetime, w.ops)
			}
		})
	}
	for range pipe.config.Limits.RetryWorkers {
		pipe.retrying.Go(func() { pipe.retry.loop(lifetime) })
	}
	return nil
}

// Stop refuses new commands, finishes waiting ones, and returns when every caller has an answer. When ctx ends first it abandons running
// groups: their callers get an error and repeat the command with the same key. It may be called twice, and without Start.
func (pipe *Pipeline) Stop(ctx context.Context) {
	pipe.ending.Do(func() {
		go func() {
			defer close(pipe.ended)
			pipe.queue.close()
			pipe.committing.Wait()
			pipe.committers.drop()
			pipe.retry.close()
			pipe.retrying.Wait()
			pipe.retries.drop()
		}()
	})
	select {
	case <-pipe.ended:
	case <-ctx.Done():
		pipe.stop()
		<-pipe.ended
	}
	pipe.stop()
}

// Ticket collects the commands that one caller submits and waits for.
type Ticket struct {
	pipe  *Pipeline
	ops   []*op
	batch *batch
}

// Ticket returns an empty ticket.
func (pipe *Pipeline) Ticket() *Ticket { return &Ticket{pipe: pipe, batch: newBatch()} }

// Submit queues a command. It fails at once with Overloaded if the queue is full, or with ShuttingDown.
func (t *Ticket) Submit(ctx context.Context, p *decide.Prepared) error {
	taken, closed := t.pipe.queue.push(t.add(ctx, []*decide.Prepared{p}))
	switch {
	case closed:
		return errStopping()
	case taken == 0:
		return t.pipe.overloaded()
	}
	return nil
}

// SubmitMany queues commands in order, and waits for space. Commands that are not queued before ctx ends are settled with an error.
func (t *Ticket) SubmitMany(ctx context.Context, list []*decide.Prepared) {
	ops := t.add(ctx, list)
	taken, closed := t.pipe.queue.pushAll(ctx, ops)
	for _, o := range ops[taken:] {
		if o.err = errStopping(); !closed {
			o.err = workflow.Errorf(workflow.TimedOut, "the queue was full for too long; nothing was done")
		}
		o.answer()
	}
}

func errStopping() error {
	return workflow.Errorf(workflow.ShuttingDown, "this node is stopping; ask another with the same key")
}

func (t *Ticket) add(ctx context.Context, list []*decide.Prepared) []*op {
	first := len(t.ops)
	block := make([]op, len(list))
	for i, p := range list {
		o := &block[i]
		o.p, o.batch, o.canceled, o.route = p, t.batch, ctx.Done(), routeOf(p)
		if p.Trace != "" {
			o.span = tracing.SpanOf(ctx)
		}
		t.ops = append(t.ops, o)
	}
	t.batch.left.Add(int64(len(list)))
	return t.ops[first:]
}

// Do runs one command. It fails at once if the queue is full. Otherwise it returns when the outcome is durable or ctx ends.
func (pipe *Pipeline) Do(ctx context.Context, p *decide.Prepared) (transitions.Receipt, error) {
	t := pipe.Ticket()
	if err := t.Submit(ctx, p); err != nil {
		return transitions.Receipt{}, err
	}
	reply := t.Wait(ctx)[0]
	return reply.Receipt, reply.Err
}

// Continue is like Do, but waits for space in the queue: the command was accepted earlier.
func (pipe *Pipeline) Continue(ctx context.Context, p *decide.Prepared) (transitions.Receipt, error) {
	t := pipe.Ticket()
	t.SubmitMany(ctx, []*decide.Prepared{p})
	reply := t.Wait(ctx)[0]
	return reply.Receipt, reply.Err
}

// Wait returns the answers in the order of the commands when all are complete or ctx ends. A command without an answer has a TimedOut
// error: it is removed from the queue if it still waits, and may still be done otherwise. No command can be submitted after Wait.
func (t *Ticket) Wait(ctx context.Context) []transitions.Reply {
	t.batch.release()
	select {
	case <-t.batch.done:
	case <-ctx.Done():
		t.pipe.queue.leave(t.ops)
	}
	replies := make([]transitions.Reply, len(t.ops))
	for i, o := range t.ops {
		replies[i].Receipt, replies[i].Err = o.outcome()
	}
	return replies
}

// finish answers and announces a committed group.
func (pipe *Pipeline) finish(g *group) {
	g.answers()
	pipe.stats.groups.Add(1)
	pipe.scopes.count(g.ops)
	for _, o := range g.ops {
		pipe.sizes.learn(o)
		pipe.stats.count(o)
		pipe.logFailure(o)
	}
	if pipe.config.Flights != nil {
		if list := g.flightUpdates(); len(list) > 0 {
			pipe.config.Flights.Updated(list)
		}
	}
	for _, t := range g.parts {
		for _, o := range t.stored {
			o.ambiguous = nil // the write proves that no earlier run was committed
		}
	}
	pipe.reportAmbiguous(g.ops)
	for _, o := range g.ops {
		o.answer()
	}
	pipe.retry.headsFree(g.parts)
	pipe.queue.wrote(g.parts)
	for _, t := range g.parts {
		if t.head > 0 {
			pipe.config.Committed(t.tenant, t.head, t.events)
		}
	}
}

// unbroken fails the ops after an earlier failure of their caller on the same route, and returns the others.
func (pipe *Pipeline) unbroken(ops []*op) []*op {
	return slices.DeleteFunc(ops, func(o *op) bool {
		err := o.batch.brokenBy(o.route)
		if err != nil {
			pipe.reportAmbiguous([]*op{o})
			o.settle(transitions.Receipt{}, err)
		}
		return err != nil
	})
}

func (pipe *Pipeline) fail(ops []*op, err error, r reaction) {
	pipe.reportAmbiguous(ops)
	for _, o := range ops {
		o.receipt, o.err = transitions.Receipt{}, answerTo(err, r)
		pipe.logFailure(o)
		o.answer()
	}
}

// logFailure logs the cause of an error, which the caller does not see.
func (pipe *Pipeline) logFailure(o *op) {
	e, _ := o.err.(*workflow.Error)
	if o.err == nil && o.p.Operation != nil {
		e = o.decision.Err
	}
	if e != nil && e.Cause != nil {
		pipe.log.Error("command failed", "tenant", o.p.Tenant, "scope", o.p.Scope, "key", o.p.Key,
			"workflow", o.p.Workflow, "transition", o.p.Transition, "code", e.Code, "error", e.Cause)
	}
}

// gate reports when all decisions that began before a moment are written or abandoned. The zero value is ready to use.
type gate struct {
	mu  sync.Mutex
	now *sync.WaitGroup // the current decisions; nil: none
}

// enter registers a decision until leave.
func (g *gate) enter() (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now == nil {
		g.now = &sync.WaitGroup{}
	}
	g.now.Add(1)
	return g.now.Done
}

// Drain waits until all commands whose decision has begun are committed or have failed. What is decided afterwards sees the definitions
// as they are now. In a caller's transaction a command is written when RunTx returns, and not yet committed.
func (pipe *Pipeline) Drain(ctx context.Context) error {
	g := &pipe.gate
	g.mu.Lock()
	before := g.now
	g.now = nil
	g.mu.Unlock()
	if before == nil {
		return nil
	}
	done := make(chan struct{})
	go func() { before.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		leave := g.enter() // for the next Drain
		go func() { before.Wait(); leave() }()
		return ctx.Err()
	}
}
