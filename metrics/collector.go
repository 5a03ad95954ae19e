// Package metrics exports metrics of an engine for Prometheus: counters since its start, and the state of keys and sinks in the database.
// [Table] lists all metrics and is the source of the table in the documentation.
//
// A [Collector] registers with any registry of Prometheus' client. Reads of the database during a
// scrape are bounded and cached for some seconds, so frequent scrapes do not increase the load.
//
// Sum the counters of nodes. Values from the database are the same on every node: use their max.
package metrics

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/outbox/relay"
)

// Engine is the part of an engine that a Collector measures.
type Engine interface {
	// Counters of this node since its start.
	Stats() engine.PipelineStats
	InFlightStats() engine.InFlightStats
	ActivityDurations() []engine.ActivityDurations
	SinkStats() relay.Stats
	Scopes(tenant string) []inspect.ScopeCount // "" means all tenants
	RetentionStats() engine.RetentionStats
	MigrationStats() engine.MigrationStats

	// State in the database; the tenant "" means all.
	Keys(ctx context.Context, tenant string) (inspect.Keys, error)
	Counts(ctx context.Context, f inspect.CountFilter) (inspect.Counts, error)
	Rollout(ctx context.Context) ([]inspect.WorkflowVersion, error)
	Sinks(ctx context.Context, tenant string) ([]inspect.SinkInfo, error)
	Migrations(ctx context.Context) ([]inspect.Migration, error)
	Retention(ctx context.Context) (inspect.Retention, error)
}

// Config configures the reads of the database. The zero value is sensible.
type Config struct {
	// Every is how long a read is cached, at least 20 times its duration, up to 1 minute. Defaults to 5 seconds.
	Every time.Duration

	RetentionEvery time.Duration // same for the state of retention, which is expensive and changes slowly; defaults to 1 minute
	Timeout        time.Duration // of a read; defaults to 2 seconds
	Log            *slog.Logger  // logs failed reads; defaults to slog.Default()
}

// Collector collects the metrics of an engine. It is safe for concurrent use.
type Collector struct {
	engine     Engine
	keys       reading[inspect.Keys]
	counts     reading[inspect.Counts]
	versions   reading[[]inspect.WorkflowVersion]
	sinks      reading[[]inspect.SinkInfo]
	retention  reading[inspect.Retention]
	migrations reading[[]inspect.Migration]
}

var _ prometheus.Collector = (*Collector)(nil)

// New returns a collector. It reads nothing until it is scraped.
func New(e Engine, c Config) *Collector {
	c.Every = cmp.Or(max(c.Every, 0), 5*time.Second)
	c.RetentionEvery = cmp.Or(max(c.RetentionEvery, 0), time.Minute)
	c.Timeout = cmp.Or(max(c.Timeout, 0), 2*time.Second)
	c.Log = cmp.Or(c.Log, slog.Default())
	slow := c
	slow.Every = c.RetentionEvery
	return &Collector{
		engine: e,
		keys: reading[inspect.Keys]{config: c, what: "keys",
			read: func(ctx context.Context) (inspect.Keys, error) { return e.Keys(ctx, "") }},
		counts: reading[inspect.Counts]{config: c, what: "counts",
			read: remembered(func(ctx context.Context) (inspect.Counts, error) { return e.Counts(ctx, inspect.CountFilter{}) })},
		versions: reading[[]inspect.WorkflowVersion]{config: c, what: "versions", read: e.Rollout},
		sinks: reading[[]inspect.SinkInfo]{config: c, what: "sinks",
			read: func(ctx context.Context) ([]inspect.SinkInfo, error) { return e.Sinks(ctx, "") }},
		retention:  reading[inspect.Retention]{config: slow, what: "retention", read: e.Retention},
		migrations: reading[[]inspect.Migration]{config: slow, what: "migrations", read: e.Migrations},
	}
}

// Describe implements prometheus.Collector. It describes all metrics of [Table].
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, k := range kinds {
		ch <- k.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	s := c.engine.Stats()
	for claim, n := range s.Claims {
		send(ch, commands, n, claim)
	}
	send(ch, commandsRefused, s.Refused)
	send(ch, commandsWaiting, s.Waiting)
	send(ch, groups, s.Groups)
	send(ch, groupsAgain, s.Again)
	send(ch, groupsLost, s.Lost)
	send(ch, groupsSplit, s.Splits)
	send(ch, commandsAside, s.Aside)
	sendScopes(ch, scoped, c.engine.Scopes(""))
	sendInFlight(ch, c.engine.InFlightStats())
	list := c.engine.ActivityDurations()
	for i := range list {
		d := &list[i]
		buckets := make(map[float64]uint64, len(d.Within))
		for b, n := range d.Within {
			buckets[engine.DurationBounds[b]] = n
		}
		ch <- prometheus.MustNewConstHistogram(activityTook.desc, d.Count, d.Sum.Seconds(), buckets, d.Workflow, d.Activity, d.Outcome)
	}
	sendRelay(ch, c.engine.SinkStats())
	sendRead(ch, &c.keys, sendKeys)
	sendRead(ch, &c.counts, sendCounts)
	sendRead(ch, &c.versions, sendVersions)
	sendPurged(ch, c.engine.RetentionStats())
	sendMigrated(ch, c.engine.MigrationStats())
	sendRead(ch, &c.migrations, sendMigrations)
	sendRead(ch, &c.sinks, sendSinks)
	sendRead(ch, &c.retention, sendRetention)
}

// sendRead sends values from the database, if they can be read.
func sendRead[T any](ch chan<- prometheus.Metric, r *reading[T], sendAll func(ch chan<- prometheus.Metric, value *T, at time.Time)) {
	value, at, failures := r.get()
	if !at.IsZero() {
		sendAll(ch, &value, at)
	}
	send(ch, readFailures, failures, r.what)
}

var readFailures = counter("pawl_scrape_read_failures_total",
	"Failed reads of the database for a scrape; their metrics are missing.", "of")

// reading is a periodic read of the database, for all tenants.
type reading[T any] struct {
	config Config
	what   string
	read   func(ctx context.Context) (T, error)

	mu       sync.Mutex // held during a read: concurrent callers share the result
	tried    time.Time
	took     time.Duration // duration of the last read
	value    T
	at       time.Time // time of the last read; zero if it failed
	failures int64
}

// get returns the value and the time of the last read, or zero, and the number of failures. Slow reads take at most a
// twentieth of the time.
func (r *reading[T]) get() (value T, at time.Time, failures int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rest := max(r.config.Every, min(20*r.took, time.Minute)); r.tried.IsZero() || time.Since(r.tried) >= rest {
		ctx, cancel := context.WithTimeout(context.Background(), r.config.Timeout)
		defer cancel()
		var err error
		begun := time.Now()
		r.value, err = r.read(ctx)
		r.tried = time.Now()
		r.took = r.tried.Sub(begun)
		if r.at = r.tried; err != nil {
			r.at = time.Time{}
			r.failures++
			r.config.Log.Warn("a scrape could not read the database", "of", r.what, "error", err)
		}
	}
	return r.value, r.at, r.failures
}
