package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/audit/verify"
	"github.com/pawlhq/pawl/engine/internal/commit"
	"github.com/pawlhq/pawl/engine/internal/inflight"
	"github.com/pawlhq/pawl/engine/internal/migrate"
	"github.com/pawlhq/pawl/engine/internal/retention"
	"github.com/pawlhq/pawl/engine/internal/schedules"
	"github.com/pawlhq/pawl/engine/internal/watch"
	"github.com/pawlhq/pawl/inbox"
	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/build"
	"github.com/pawlhq/pawl/internal/kernel/clock"
	"github.com/pawlhq/pawl/internal/kernel/definitions"
	"github.com/pawlhq/pawl/internal/kernel/loop"
	"github.com/pawlhq/pawl/internal/kernel/notify"
	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/outbox/feed"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/schedule"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/schema/pooler"
	"github.com/pawlhq/pawl/workflow"
)

// Engine runs workflows on one database. It is safe for concurrent use. Several engines, in one or many processes, may share a database.
type Engine struct {
	config     Config
	registry   *registry
	clock      *clock.Clock
	reader     *store.Reader
	pipeline   *commit.Pipeline
	inflight   *inflight.Runner
	relay      *relay.Relay
	sinks      *relay.Table
	notify     *notify.Exchange
	feed       *feed.Feed
	watch      *watch.Hub
	audit      *audit.Table
	verify     *verify.Verifier
	pauses     *pauses
	presence   *presence
	scopeRows  *store.Scopes
	recorder   *scopeRecorder
	retention  *retention.Runner
	migrations *migrate.Table
	migrating  *migrate.Runner
	names      *names
	inbox      *inbox.Table
	sources    *inbox.Runner
	schedules  *schedules.Runner // nil: the program has none
	calendars  schedule.Calendars

	scheduleRows *schedules.Table

	pools   []*pgxpool.Pool // of who holds leases
	started bool
}

// New checks the configuration and builds the workflows. It does not touch the database. Its error lists every mistake of every workflow.
func New(c Config) (*Engine, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	in := schema.For(c.Schema)
	scheduled, hasSchedules := c.takeSchedules(in)
	known, err := definitions.Build(c.Workflows, c.Replay)
	if err != nil {
		return nil, err
	}
	r := &registry{known}
	log := outbox.New(c.Pool, in, c.Source)
	e := &Engine{config: c, registry: r, clock: clock.New(c.Now), names: &names{young: map[instanceKey]string{}},
		reader: store.NewReader(c.Pool, in),
		audit:  audit.New(c.Pool, in), verify: verify.New(c.Pool, in), pauses: &pauses{rows: store.NewPauses(c.Pool, in)},
		sinks: relay.NewTable(c.Pool, in), inbox: inbox.NewTable(c.Pool, in), migrations: migrate.NewTable(c.Pool, in)}
	listen, err := e.listener()
	if err != nil {
		return nil, err
	}
	e.notify = notify.New(notify.Config{Pool: c.Pool, Connect: listen, Channel: c.Schema, Log: c.Log, Off: c.PollOnly || c.pooled()})
	e.sources = inbox.NewRunner(inbox.RunnerConfig{Sources: c.Sources, Consume: e.receive, Log: c.Log})
	e.feed = feed.New(feed.Config{Log: log, Logger: c.Log, Peers: e.notify})
	e.watch = watch.New(watch.Config{Read: e.reader.Records, Announce: e.notify.Changed, Clock: e.clock, Log: c.Log})
	node, pool := nodeName(), c.Pool.Config().ConnConfig
	if e.inflight, err = e.newInflight(in, node); err != nil {
		return nil, err
	}
	e.pipeline = commit.New(commit.Config{
		Limits: commit.Limits(c.Pipeline), Connect: connector(pool), Pooled: pooler.Expected(pool), Schema: c.Schema,
		Statements: commit.NewStatements(in), Definitions: r, Clock: e.clock, Committed: e.committed, Paused: e.pauses.has,
		Flights: e.inflight, Node: node, Lease: c.InFlight.Lease, Log: c.Log, Tracer: c.Tracer,
	})
	e.retention = e.newRetention(in, node)
	e.presence = &presence{rows: store.NewRollout(c.Pool, in), node: node, build: build.This().String(), registry: r, confirmed: []string{},
		drain: e.pipeline.Drain, log: c.Log, wanted: make(chan struct{}, 1), end: func() {}}
	e.migrating = e.newMigrations(node)
	e.scopeRows = store.NewScopes(c.Pool, in)
	e.scheduleRows = schedules.NewTable(c.Pool, in)
	if hasSchedules {
		e.calendars, e.schedules = scheduled.Calendars, e.newSchedules(scheduled)
	}
	e.recorder = &scopeRecorder{Loop: loop.New(), rows: e.scopeRows, take: e.pipeline.TakeScopes, log: c.Log}
	if e.relay, err = e.newRelay(log, node); err != nil {
		e.closePools()
		return nil, err
	}
	return e, nil
}

// connector opens connections with the parameters of c, and a name of their own.
func connector(c *pgx.ConnConfig) commit.Connect {
	return func(ctx context.Context, name string) (*pgx.Conn, error) {
		named := c.Copy()
		pooler.Configure(named)
		named.RuntimeParams["application_name"] = name
		return pgx.ConnectConfig(ctx, named)
	}
}

// listener returns how to connect to hear other nodes.
func (e *Engine) listener() (commit.Connect, error) {
	if e.config.Listen == "" {
		return connector(e.config.Pool.Config().ConnConfig), nil
	}
	config, err := pgx.ParseConfig(e.config.Listen)
	if err != nil {
		return nil, fmt.Errorf("engine: Config.Listen: %w", err)
	}
	return connector(config), nil
}

// checkListener refuses a Config.Listen that leads through a pooler: notifications would be lost, and a session of the pooler would keep
// listening. It accepts an address without a server, which the notification exchange reports.
func (e *Engine) checkListener(ctx context.Context) error {
	if e.config.Listen == "" || e.config.PollOnly {
		return nil
	}
	connect, err := e.listener()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := connect(ctx, "pawl listener")
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close(ctx) }() // nothing was done on it
	if err := pooler.CheckSession(ctx, conn); errors.Is(err, pooler.ErrShared) {
		return fmt.Errorf("engine: Config.Listen (--listen) must lead past the pooler: %w", err)
	}
	return nil
}

// checkDatabase refuses a database, or a way to it, that this program cannot work with.
func (e *Engine) checkDatabase(ctx context.Context) error {
	if err := pooler.Check(ctx, e.config.Pool); err != nil {
		return err
	}
	if err := e.checkListener(ctx); err != nil {
		return err
	}
	return schema.Check(ctx, e.config.Pool, e.config.Schema)
}

// record tells the database what this node runs, and makes the partitions that its clock will soon need.
func (e *Engine) record(ctx context.Context) error {
	if err := e.registry.record(ctx, e.config); err != nil {
		return err
	}
	if !e.config.Transient {
		if err := e.registry.recordHorizons(ctx, e.config); err != nil {
			return err
		}
	}
	// Make the partitions that this node's clock will soon need.
	if _, err := e.config.Pool.Exec(ctx, schema.In(e.config.Schema, "SELECT {pawl}.make_partitions($1)"), e.clock.Now()); err != nil {
		return fmt.Errorf("make the partitions of the outbox: %w", err)
	}
	return nil
}

// Start checks that the schema is the one that this program needs, records the
// definitions and the sinks, and begins to work. ctx bounds only the start.
//
// Errors: a pooler that Config.Pool or Config.Listen is not made for, schema.ErrBehind,
// schema.ErrNewer, a workflow that changed under its version, those of the database.
func (e *Engine) Start(ctx context.Context) error {
	if e.started {
		return errors.New("engine: started twice")
	}
	if err := e.checkDatabase(ctx); err != nil {
		return err
	}
	if err := e.record(ctx); err != nil {
		return err
	}
	if err := e.pauses.load(ctx); err != nil {
		return err
	}
	if err := e.presence.tell(ctx); err != nil {
		return err
	}
	if err := e.pipeline.Start(ctx); err != nil {
		return fmt.Errorf("start the commit pipeline: %w", err)
	}
	e.presence.start()
	e.feed.Start()
	e.watch.Start()
	if e.config.pooled() && !e.config.PollOnly {
		e.config.Log.Info("connecting as through a pooler: nodes hear of each other by polling, until Config.Listen leads past it")
	}
	e.notify.Start(notify.Listener{Head: e.headHeard, Changed: e.heard, Due: e.inflight.Wake, Sinks: e.relay.Wake,
		Begins: e.presence.want})
	e.inflight.Start(e.pipeline)
	e.sources.Start()
	e.recorder.start()
	e.retention.Start()
	if !e.config.Transient {
		e.migrating.Start()
		if e.schedules != nil {
			e.schedules.Start()
		}
	}
	e.started = true
	if err := e.relay.Start(ctx); err != nil {
		e.Stop(ctx)
		return err
	}
	return nil
}

// StartReading starts an engine that only follows the log and commands, instead of Start. It refuses commands with ShuttingDown, writes
// nothing, and polls for changes once a second. ctx bounds only the start.
//
// Errors: those of Start about a database that cannot be read.
func (e *Engine) StartReading(ctx context.Context) error {
	if err := e.checkDatabase(ctx); err != nil {
		return err
	}
	e.pipeline.Stop(ctx)
	e.feed.Start()
	e.watch.Start()
	return nil
}

// Stop refuses new commands, answers waiting ones, ends every Follower, Watcher and Await, releases the sinks to other nodes and closes
// them, and returns when all is done. When ctx ends first it abandons what still runs. Activities that still run shortly before half of
// ctx's time are cancelled, and other nodes continue them at once. Sources that have not ended by then are abandoned, and the pipeline has
// half of the remaining time, so that one slow part cannot use the time of the others. Stop may be called twice.
func (e *Engine) Stop(ctx context.Context) {
	defer e.closePools()
	if e.started {
		e.retention.Stop()
		e.migrating.Stop()
		if e.schedules != nil {
			e.schedules.Stop()
		}
		e.presence.stop(ctx)
		e.stopComing(ctx)
		e.stopPipeline(ctx)
		e.recorder.Stop()
	}
	e.relay.Stop(ctx)
	e.feed.Stop()
	e.watch.Stop()
	if e.started {
		e.notify.Stop()
	}
}

// Ready reports whether the database answers.
func (e *Engine) Ready(ctx context.Context) error {
	if err := e.config.Pool.Ping(ctx); err != nil {
		return &workflow.Error{Code: workflow.Unavailable, Message: "the database cannot be reached", Cause: err}
	}
	return nil
}

// Stats are the pipeline's counters since the start.
func (a *Admin) Stats() commit.Stats { return a.e.pipeline.Stats() }

// Workflows lists, by name, the version of each workflow that new instances begin with.
func (r *Reader) Workflows() []*workflow.Workflow { return r.e.registry.Newest() }

// Versions lists the versions of a workflow that this node knows: the one that new instances begin with, then the others, the newest first.
func (r *Reader) Versions(name string) []*workflow.Workflow { return r.e.registry.Versions(name) }

// Workflow finds a version of a workflow; 0 is the one that new instances begin with. Errors: WorkflowNotFound;
// NotOnThisNode where this node knows other versions of it.
func (r *Reader) Workflow(name string, version int) (*workflow.Workflow, error) {
	if w := r.e.registry.Find(name, version); w != nil {
		return w, nil
	}
	if version != 0 && r.e.registry.Find(name, 0) != nil {
		return nil, workflow.Errorf(workflow.NotOnThisNode, "this node does not know version %d of workflow %q", version, name)
	}
	return nil, definitions.NotFound(name)
}

// newID is the id of an instance without a business key. Version 7 ids grow with time, which is kind to the index.
func newID() uuid.UUID {
	id, err := uuid.NewV7()
	if err != nil {
		panic(fmt.Sprintf("engine: the system has no randomness: %v", err))
	}
	return id
}
