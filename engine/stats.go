package engine

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/pawlhq/pawl/engine/internal/commit"
	"github.com/pawlhq/pawl/engine/internal/inflight"
	"github.com/pawlhq/pawl/engine/internal/migrate"
	"github.com/pawlhq/pawl/engine/internal/retention"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/loop"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
)

// What a node counts, each since its start.
type (
	// PipelineStats are the counters of the commit pipeline.
	PipelineStats = commit.Stats
	// InFlightStats are those of the work on commands in flight.
	InFlightStats = inflight.Stats
	// ActivityDurations counts the attempts of an activity that had the same outcome, by how long they took.
	ActivityDurations = inflight.Durations
	// RetentionStats are those of what this node removed.
	RetentionStats = retention.Stats
	// MigrationStats are those of the instances that this node took to another version.
	MigrationStats = migrate.Stats
)

// DurationBounds are the upper bounds of the buckets of ActivityDurations.Within, in seconds.
var DurationBounds = inflight.DurationBounds

// Keys returns the state of the keys of a tenant's commands, or of all tenants for "". It is cheap on large tables: finished commands are
// estimated there, and commands in flight are counted up to a limit. An engine that is not started has no scopes of its own.
//
// Errors: InvalidRequest for an invalid tenant, Unavailable, TimedOut.
func (a *Admin) Keys(ctx context.Context, tenant string) (inspect.Keys, error) {
	k := inspect.Keys{Tenant: tenant, Scopes: a.e.pipeline.Scopes(tenant)}
	if err := transitions.CheckTenant(tenant); err != nil {
		return k, err
	}
	if err := a.e.reader.Keys(ctx, &k); err != nil {
		return k, err
	}
	var err error
	if k.Recorded, k.RecordedSince, err = a.e.scopeRows.Read(ctx, tenant); err != nil {
		return k, err
	}
	k.DeadMessages, k.OldestDeadMessage, err = a.e.inbox.Waiting(ctx, tenant, inspect.MaxCounted)
	return k, err
}

// Scopes are how this node has answered the attempts of a tenant's callers since
// its start, by scope, those with the most attempts first. "" is all tenants.
func (a *Admin) Scopes(tenant string) []inspect.ScopeCount { return a.e.pipeline.Scopes(tenant) }

// Counts tells how many instances there are of each workflow, version and state. It is cheap on large tables: up to 10,000 of a kind are
// counted, fewer where there are more than five kinds (50,000 together), and what is more is estimated by the planner. It says of each
// which it is. Of all tenants ("") everything is an estimate where a filter selects more than 1,000 kinds of theirs, or they have more than
// 10,000 that it would have to look at: of the workflows that this engine has, and of what the first of the tenants have. The kinds of
// others are left out then.
//
// With attributes, instances are counted if the index of attributes has at most 10,000 of them, and estimated otherwise.
//
// Errors: InvalidRequest, WorkflowNotFound, Unavailable, TimedOut.
func (r *Reader) Counts(ctx context.Context, f inspect.CountFilter) (inspect.Counts, error) {
	c := inspect.Counts{At: r.e.clock.Now().UTC(), Tenant: f.Tenant, Exact: true, Counts: []inspect.InstanceCount{}}
	if f.Workflow != "" {
		if _, err := r.Workflow(f.Workflow, 0); err != nil {
			return c, err
		}
	}
	if err := f.Check(r.Versions(f.Workflow)); err != nil {
		return c, err
	}
	var kinds []store.Kind // that the filter selects
	for _, w := range r.e.registry.All() {
		for _, state := range w.States {
			k := store.Kind{Workflow: w.Name, Definition: w.Version, State: state, Open: !w.IsFinal(state)}
			if k.Selected(&f) {
				kinds = append(kinds, k)
			}
		}
	}
	list, exact, err := r.e.reader.Counts(ctx, &f, kinds)
	if err != nil {
		return c, err
	}
	c.Exact = exact
	for _, k := range list {
		c.Add(k)
	}
	slices.SortFunc(c.Counts, func(a, b inspect.InstanceCount) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), a.Definition-b.Definition, cmp.Compare(a.State, b.State))
	})
	return c, nil
}

const (
	// recordEvery is the interval of additions to the table. A killed node loses the counts of at most that time.
	recordEvery = time.Minute
	// forgetEvery is the interval of removals of old counts.
	forgetEvery = time.Hour
	// maxUnrecorded bounds the scopes that are counted one by one while the table cannot be written.
	maxUnrecorded = 5000
	recordBudget  = 5 * time.Second
	recordAtStop  = time.Second
)

// scopeRecorder adds the answers of attempts, by scope, to the database. It uses one statement for many attempts, because a replay must
// not write.
type scopeRecorder struct {
	*loop.Loop
	rows *store.Scopes
	take func() []inspect.ScopeCount // returns the attempts since its last call
	log  *slog.Logger

	unrecorded []inspect.ScopeCount // from failed writes
	forgotten  time.Time
}

// start records until Stop, which records the remaining attempts.
func (r *scopeRecorder) start() {
	r.Loop.Start(func(ctx context.Context) time.Duration { r.record(ctx); return recordEvery }, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, recordAtStop)
		defer cancel()
		r.record(ctx)
	})
}

// record writes the attempts since the last call. After an error it keeps them for the next call; if the commit succeeded although its
// answer was lost, they are counted twice.
func (r *scopeRecorder) record(ctx context.Context) {
	r.unrecorded = inspect.MergeScopes(r.unrecorded, r.take(), maxUnrecorded)
	if len(r.unrecorded) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordBudget)
	defer cancel()
	if err := r.rows.Add(ctx, r.unrecorded); err != nil {
		r.log.Warn("attempts by scope could not be recorded; the node tries again in a minute", "error", err)
		return
	}
	r.unrecorded = nil
	if time.Since(r.forgotten) < forgetEvery {
		return
	}
	if err := r.rows.Forget(ctx); err != nil {
		r.log.Warn("old attempts by scope could not be removed; the node tries again in a minute", "error", err)
		return
	}
	r.forgotten = time.Now()
}

func (e *Engine) newRetention(in func(string) string, node string) *retention.Runner {
	c := e.config
	asked, worked := time.Now(), time.Duration(0)
	return retention.New(retention.Config{
		Pool: c.Pool, In: in, Node: node, Clock: e.clock, Busy: func() float64 {
			now, working := time.Now(), e.pipeline.Stats().Working
			share := float64(working-worked) / float64(now.Sub(asked))
			asked, worked = now, working
			return min(share, 1)
		}, Workflows: e.registry.Names(), Replay: c.Replay,
		Outbox: c.Retention.Outbox, Batch: c.Retention.Batch, Off: c.Retention.Off, Log: c.Log,
	})
}

// Retention tells which node does retention, and what there is of the outbox and of the history of commands. Error: Unavailable.
func (a *Admin) Retention(ctx context.Context) (inspect.Retention, error) {
	s, err := a.e.retention.Standing(ctx)
	if err != nil {
		return s, store.ReadError("standing of retention", err)
	}
	return s, nil
}

// RetentionStats are the counters of what this node did for retention.
func (a *Admin) RetentionStats() retention.Stats { return a.e.retention.Stats() }
