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

// Engine is what is measured.
type Engine interface {
	// Stats are the counters of the commit pipeline.
	Stats() engine.PipelineStats
	// InFlightStats are those of the work on commands in flight.
	InFlightStats() engine.InFlightStats
	// ActivityDurations are the durations of the attempts of activities.
	ActivityDurations() []engine.ActivityDurations
	// SinkStats are those of the deliveries to sinks.
	SinkStats() relay.Stats
	// Scopes are how attempts were answered, by scope; "" is all tenants'.
	Scopes(tenant string) []inspect.ScopeCount
	// Keys tells how the keys of commands stand; "" is all tenants'.
	Keys(ctx context.Context, tenant string) (inspect.Keys, error)
	// Counts tells how many instances there are of each kind.
	Counts(ctx context.Context, f inspect.CountFilter) (inspect.Counts, error)
	// Rollout lists the versions of workflows, and the nodes that know them.
	Rollout(ctx context.Context) ([]inspect.WorkflowVersion, error)
	// RetentionStats are those of what this node removed.
	RetentionStats() engine.RetentionStats
	// MigrationStats are those of the instances that this node took to another version.
	MigrationStats() engine.MigrationStats
	// Sinks tells how the sinks stand; "" is for all tenants.
	Sinks(ctx context.Context, tenant string) ([]inspect.SinkInfo, error)
	// Migrations lists the newest migrations of instances.
	Migrations(ctx context.Context) ([]inspect.Migration, error)
	// Retention tells how retention stands.
	Retention(ctx context.Context) (inspect.Retention, error)
}

// Config says how the database is read. The zero value is right for most.
type Config struct {
	// Every is for how long what was read is good; longer where it is slow to read: 20 times as long as that took, up to
	// 1 min. Default 5 s.
	Every time.Duration

	RetentionEvery time.Duration // likewise, of how retention stands, which is dearer and changes slowly. Default 1 min.
	Timeout        time.Duration // how long a read may take. Default 2 s.
	Log            *slog.Logger  // told of reads that fail. Default: slog.Default().
}

// Collector gives the metrics of an engine. It is safe for concurrent use.
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

// New makes a collector. It reads nothing until it is scraped.
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

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, k := range kinds {
		ch <- k.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	sendCommits(ch, c.engine.Stats())
	sendScopes(ch, scoped, c.engine.Scopes(""))
	sendInFlight(ch, c.engine.InFlightStats())
	sendDurations(ch, c.engine.ActivityDurations())
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

// sendRead sends what is read from the database, unless it cannot be.
func sendRead[T any](ch chan<- prometheus.Metric, r *reading[T], sendAll func(ch chan<- prometheus.Metric, value *T, at time.Time)) {
	value, at, failures := r.get()
	if !at.IsZero() {
		sendAll(ch, &value, at)
	}
	send(ch, readFailures, failures, r.what)
}

// readFailures says when what is read from the database is missing.
var readFailures = counter(
	"pawl_scrape_read_failures_total",
	"Reads of the database for a scrape that failed; their metrics are missing then.",
	"of",
)

// reading is something of all tenants that is read from the database now and then.
type reading[T any] struct {
	config Config
	what   string
	read   func(ctx context.Context) (T, error)

	mu       sync.Mutex // held while it is read: who comes meanwhile gets the same
	tried    time.Time
	took     time.Duration // to read it
	value    T
	at       time.Time // when it was read; zero when the last attempt failed
	failures int64
}

// get returns what was read and when, or the zero time, and how often it could not
// be read.
func (r *reading[T]) get() (value T, at time.Time, failures int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tried.IsZero() || time.Since(r.tried) >= r.rest() {
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

// rest is how long it is until it may be read again: what is slow to read takes no more
// than a twentieth of the time, up to a rest of a minute.
func (r *reading[T]) rest() time.Duration {
	return max(r.config.Every, min(20*r.took, time.Minute))
}
