package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/inbox"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/schedule"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/schema/pooler"
	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Config is what an engine needs. Only Pool and Workflows are required.
type Config struct {
	// Pool is used for reads, and says how to connect: the pipeline opens a few connections of its own with the same parameters. The engine
	// does not close it. Behind a pooler in transaction mode, such as PgBouncer, its DefaultQueryExecMode must be Exec
	// (default_query_exec_mode=exec in the connection string), CacheDescribe or SimpleProtocol; then nothing of the engine's stays in a
	// session of the database.
	Pool *pgxpool.Pool

	// Workflows are the definitions that this node runs. Several versions of one may be given; new instances begin with the newest.
	Workflows []workflow.Source

	// Schema is the PostgreSQL schema of Pawl's tables. Default "pawl".
	Schema string

	// Replay is how long the answer to a command is replayed where its workflow does not say it; see workflow.Horizons. Default 24 h.
	Replay time.Duration

	// Now is the clock of decisions, for tests. Default: the system's, corrected to the database's.
	Now func() time.Time

	// Listen is the connection string for the one connection that hears other nodes' notifications. Behind a pooler in transaction mode it
	// must lead past the pooler, where LISTEN does not work. Default: as Pool connects.
	Listen string

	// PollOnly lets nodes hear of each other only by polling the database once a second, neither sending nor hearing notifications. A node
	// behind a pooler without Listen does so.
	PollOnly bool

	// Sources are where messages come from. The engine runs them from Start to Stop, and consumes what they receive.
	Sources []inbox.Source

	// MaxDeliveries is how often a message is delivered whose instance is not there, before it is on the list of dead messages. It counts
	// where the source does. Default 20.
	MaxDeliveries int

	// Recheck is called before a scheduled command is decided that has a Proof: the credential that it was sent with may have been
	// revoked, or may have ended. An error with the code CredentialEnded becomes the answer of the command; after another one the
	// command is tried again. c.Workflow, c.Transition and c.Instance are set. It may be called concurrently. Defaults to no check.
	Recheck func(ctx context.Context, c *transitions.Command) error

	// Transient says that this engine takes part for a moment only, such as a program of
	// an operator's: what its workflows say of horizons is not written down.
	Transient bool

	// Log takes what operators should know. Default: slog.Default().
	Log *slog.Logger

	// Tracer receives the steps of commands, activities and deliveries; package tracing/opentelemetry has an implementation. Nil disables
	// tracing.
	Tracer tracing.Tracer

	Pipeline  PipelineConfig
	InFlight  InFlightConfig
	Retention RetentionConfig

	// Source is the beginning of the source of every event; the tenant follows. Installations that feed the same receiver or stream need
	// different ones: otherwise their events look like repetitions of each other. It must be the same on all nodes and must never change,
	// because an event that is sent again after a change has another id. A URI reference, such as "/shop" or "https://shop.example". Defaults
	// to "/pawl".
	Source string

	// Sinks are the receivers of the events. Nodes with the same sinks share the work: of all that have a sink one delivers to it. The
	// engine closes them when it stops.
	Sinks []relay.Sink

	// SinkLease is how long a node's sinks are left alone after its death; then others take them over. Default 6.3 s, which is three polls;
	// a shorter one makes the polls more frequent. At least 600 ms.
	SinkLease time.Duration
}

// InFlightConfig says how this node works on commands in flight.
type InFlightConfig struct {
	// Workers is the maximum number of concurrent attempts of activities and due commands on this node. Defaults to 100. A negative number
	// disables them: other nodes run the activities of commands that this node accepts.
	Workers int

	// Lease is how long a worker holds a command without a heartbeat. When a node dies, others take over what it held after that, if they
	// have had the database in sight for as long. Default 30 s; at least 100 ms.
	Lease time.Duration
}

// RetentionConfig says how long what is done with is kept, and how it goes. One node of the database does it for all.
type RetentionConfig struct {
	// Off keeps this node from it. The others do it, or SQL callers with pawl.purge.
	Off bool

	// Outbox is how old an event is at least when it is removed. It is kept for longer while a sink has not got it, and goes with the
	// others of its week. Default 30 days; at least a day.
	Outbox time.Duration

	// Batch is how many keys are seen to in one transaction, at most. Default 2000.
	Batch int
}

// PipelineConfig tunes the commit pipeline. The zero value is right for most.
type PipelineConfig struct {
	Committers   int           // connections that commit groups, as many of them as are needed. Default: one for each two cores, 2 to 8.
	RetryWorkers int           // connections for commands that wait for locks or run user SQL, of which one tenant has all but two. Default 6.
	QueueSize    int           // commands that may wait on this node; half of them for locks or for user SQL. Default 16384.
	QueueBytes   int           // bytes that those may take, about. Default 128 MiB.
	QueueWait    time.Duration // how long a command may wait for its turn, about: one that would wait longer is refused. Default 500 ms.
	GroupSize    int           // commands in one transaction, at most. Default 256.
	GroupBytes   int           // bytes of payloads and of the data of instances in one transaction, read and written, about. Default 4 MiB.
	LockWait     time.Duration // how long a command waits for a lock of another transaction. Defaults to 15 s.
	Outage       time.Duration // how long commands wait for a database that is gone. Default 30 s.
	HookTimeout  time.Duration // how long a transition's own SQL may take. Default 30 s.

	// OneTenantPerStatement keeps the tenants apart in a transaction of several: no statement has rows of two of them. It is for a database
	// that is distributed by tenant, and makes a group cost what all of its tenants would cost alone. Default false.
	OneTenantPerStatement bool
}

// withDefaults checks the configuration and returns a complete copy.
func (c Config) withDefaults() (Config, error) {
	if c.Pool == nil {
		return c, errors.New("engine: Config.Pool is required")
	}
	if len(c.Workflows) == 0 {
		return c, errors.New("engine: Config.Workflows is empty")
	}
	setDefault(&c.Schema, schema.Default)
	setDefault(&c.Source, transitions.DefaultSource)
	setDefault(&c.Replay, 24*time.Hour)
	setDefault(&c.MaxDeliveries, 20)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	p := &c.Pipeline
	setDefault(&p.Committers, min(max(runtime.GOMAXPROCS(0)/2, 2), 8))
	setDefault(&p.RetryWorkers, 6)
	setDefault(&p.QueueSize, 16384)
	setDefault(&p.QueueBytes, 128<<20)
	setDefault(&p.QueueWait, 500*time.Millisecond)
	setDefault(&p.GroupSize, 256)
	setDefault(&p.GroupBytes, 4<<20)
	setDefault(&p.LockWait, 15*time.Second)
	setDefault(&p.Outage, 30*time.Second)
	setDefault(&p.HookTimeout, 30*time.Second)
	setDefault(&c.Retention.Outbox, 30*24*time.Hour)
	setDefault(&c.Retention.Batch, 2000)
	setDefault(&c.InFlight.Workers, 100)
	c.InFlight.Workers = max(c.InFlight.Workers, 0)
	setDefault(&c.InFlight.Lease, 30*time.Second)
	setDefault(&c.SinkLease, pollsPerLease*sinkPace)
	return c, c.check()
}

func (c *Config) check() error {
	if err := schema.CheckName(c.Schema); err != nil {
		return fmt.Errorf("engine: Config.Schema: %w", err)
	}
	if err := transitions.CheckSource(c.Source); err != nil {
		return fmt.Errorf("engine: Config.Source: %w", err)
	}
	if c.Retention.Outbox < minOutbox {
		return fmt.Errorf("engine: Config.Retention.Outbox is less than %s", minOutbox)
	}
	if c.InFlight.Lease < minLease {
		return fmt.Errorf("engine: Config.InFlight.Lease is less than %s", minLease)
	}
	if c.SinkLease < minSinkLease {
		return fmt.Errorf("engine: Config.SinkLease is less than %s", minSinkLease)
	}
	p := &c.Pipeline
	for name, v := range map[string]int64{"Replay": int64(c.Replay), "MaxDeliveries": int64(c.MaxDeliveries),
		"Committers": int64(p.Committers), "RetryWorkers": int64(p.RetryWorkers),
		"QueueSize": int64(p.QueueSize), "QueueBytes": int64(p.QueueBytes), "QueueWait": int64(p.QueueWait),
		"GroupSize": int64(p.GroupSize), "GroupBytes": int64(p.GroupBytes),
		"LockWait": int64(p.LockWait), "Outage": int64(p.Outage), "HookTimeout": int64(p.HookTimeout),
		"Retention.Batch": int64(c.Retention.Batch)} {
		if v < 0 {
			return fmt.Errorf("engine: Config: %s is negative", name)
		}
	}
	return nil
}

// pooled reports whether the node cannot listen because the pool leads through a pooler.
func (c *Config) pooled() bool {
	return c.Listen == "" && pooler.Expected(c.Pool.Config().ConnConfig)
}

// pace returns the interval at which the node polls for commands in flight and for its sinks. Both together poll at most once a second, and
// leave capacity for rarer polls, those for schedules among them.
func (c *Config) pace() time.Duration {
	if len(c.Sinks) > 0 {
		return sinkPace
	}
	if slices.ContainsFunc(c.Workflows, func(s workflow.Source) bool { _, ok := s.(*schedule.Source); return ok }) {
		return 1200 * time.Millisecond
	}
	return 1050 * time.Millisecond
}

const (
	sinkPace = 2100 * time.Millisecond
	// pollsPerLease prolong a lease: two may be late before it is lost.
	pollsPerLease = 3
	minSinkLease  = pollsPerLease * 200 * time.Millisecond
)

// minOutbox leaves readers that are not sinks time to come back: nothing else holds an event for them.
const minOutbox = 24 * time.Hour

// minLease leaves time for a few heartbeats, on a busy machine.
const minLease = 100 * time.Millisecond

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
