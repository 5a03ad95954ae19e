package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

// Config is what an engine needs. Only Pool and Workflows are required.
type Config struct {
	// Pool is used for reads, and says how to connect: the pipeline opens a few
	// connections of its own with the same parameters. The engine does not close
	// it.
	Pool *pgxpool.Pool

	// Workflows are the definitions that this node runs. Several versions of one
	// may be given; new instances begin with the newest.
	Workflows []workflow.Source

	// Schema is the PostgreSQL schema of Pawl's tables. Default "pawl".
	Schema string

	// Replay is how long the answer to a command is replayed. After it a late
	// duplicate is refused, and never runs again. Default 24 h.
	Replay time.Duration

	// Now is the clock of decisions, for tests. Default: the system's, corrected
	// to the database's.
	Now func() time.Time

	// PollOnly lets nodes hear of each other only by looking into the database once
	// a second, neither sending nor hearing notifications. It is for tests, and for
	// a pool behind PgBouncer in transaction mode, where LISTEN does not work.
	PollOnly bool

	// Log takes what operators should know. Default: slog.Default().
	Log *slog.Logger

	Pipeline PipelineConfig
	InFlight InFlightConfig
}

// InFlightConfig says how this node works on commands in flight.
type InFlightConfig struct {
	// Workers is how many attempts of activities, and commands whose time has
	// come, this node works on at once. Default 100. A negative number is none:
	// what this node accepts, others work on.
	Workers int

	// Lease is how long a worker holds a command without a heartbeat. When a node
	// dies, others take over what it held after that. Default 30 s; at least 100 ms.
	Lease time.Duration
}

// PipelineConfig tunes the commit pipeline. The zero value is right for most.
type PipelineConfig struct {
	Committers  int           // connections that commit groups. Default: one for each two cores, 2 to 8.
	Lanes       int           // connections for commands that wait for locks or run user SQL. Default 4.
	QueueSize   int           // commands that may wait for one committer. Default 8192.
	QueueBytes  int           // payload bytes that may wait for one committer, about. Default 64 MiB.
	GroupSize   int           // commands in one transaction, at most. Default 256.
	GroupBytes  int           // payload bytes in one transaction, about, at most. Default 4 MiB.
	LockWait    time.Duration // how long a command waits for a lock that somebody else holds. Default 15 s.
	Outage      time.Duration // how long commands wait for a database that is gone. Default 30 s.
	HookTimeout time.Duration // how long a transition's own SQL may take. Default 30 s.
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
	if err := schema.CheckName(c.Schema); err != nil {
		return c, fmt.Errorf("engine: Config.Schema: %w", err)
	}
	setDefault(&c.Replay, 24*time.Hour)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	p := &c.Pipeline
	setDefault(&p.Committers, min(max(runtime.GOMAXPROCS(0)/2, 2), 8))
	setDefault(&p.Lanes, 4)
	setDefault(&p.QueueSize, 8192)
	setDefault(&p.QueueBytes, 64<<20)
	setDefault(&p.GroupSize, 256)
	setDefault(&p.GroupBytes, 4<<20)
	setDefault(&p.LockWait, 15*time.Second)
	setDefault(&p.Outage, 30*time.Second)
	setDefault(&p.HookTimeout, 30*time.Second)
	f := &c.InFlight
	setDefault(&f.Workers, 100)
	f.Workers = max(f.Workers, 0)
	setDefault(&f.Lease, 30*time.Second)
	if f.Lease < minLease {
		return c, fmt.Errorf("engine: Config.InFlight.Lease is less than %s", minLease)
	}
	for name, v := range map[string]int64{"Replay": int64(c.Replay), "Committers": int64(p.Committers), "Lanes": int64(p.Lanes),
		"QueueSize": int64(p.QueueSize), "QueueBytes": int64(p.QueueBytes), "GroupSize": int64(p.GroupSize), "GroupBytes": int64(p.GroupBytes),
		"LockWait": int64(p.LockWait), "Outage": int64(p.Outage), "HookTimeout": int64(p.HookTimeout)} {
		if v < 0 {
			return c, fmt.Errorf("engine: Config: %s is negative", name)
		}
	}
	return c, nil
}

// minLease leaves time for a few heartbeats, on a busy machine.
const minLease = 100 * time.Millisecond

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
