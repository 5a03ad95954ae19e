package inflight

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
)

// write stores updates, by tenant. It reports whether all of them are stored or void, so that nothing has to be tried again soon.
func (r *Runner) write(ctx context.Context, notes map[string][]*leaseUpdate) bool {
	if len(notes) == 0 {
		return true
	}
	sent := time.Now()
	stored, err := r.store(ctx, notes)
	// Only a report of progress can be rejected as a value: the JSON of Go and of PostgreSQL have different limits.
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && (strings.HasPrefix(e.Code, "22") || strings.HasPrefix(e.Code, "54")) {
		r.config.Log.Warn("reports of progress were dropped: the database does not take one of them", "error", err)
		for _, list := range notes {
			for _, n := range list {
				n.progress = ""
			}
		}
		stored, err = r.store(ctx, notes) // leases cannot wait for whoever reports
	}
	r.mu.Lock()
	r.keeper.took = time.Since(sent)
	r.mu.Unlock()
	if err != nil {
		r.config.Log.Warn("cannot prolong leases or give commands back", "error", err)
		for _, list := range notes {
			r.retryLater(list)
		}
		return false
	}
	var changed []transitions.Ref
	missing := map[string][]*leaseUpdate{}
	for tenant, list := range notes {
		for _, n := range list {
			by, ok := stored[n]
			if !ok {
				missing[tenant] = append(missing[tenant], n)
				continue
			}
			r.written(n, sent, by)
			changed = append(changed, n.Ref)
		}
	}
	if len(changed) > 0 {
		r.config.Watchers.Changed(changed)
	}
	return len(missing) == 0 || r.resolveMissing(ctx, missing)
}

// store writes updates. It returns those that were written, with the actors that requested a stop.
func (r *Runner) store(ctx context.Context, notes map[string][]*leaseUpdate) (stored map[*leaseUpdate]string, err error) {
	stored = map[*leaseUpdate]string{}
	err = r.send(ctx, func(b *pgx.Batch) {
		for tenant, list := range notes {
			written := make([]store.Note, len(list))
			for i, n := range list {
				written[i] = store.Note{InFlight: &n.InFlight, Progress: n.progress, Back: n.back, At: n.runAt}
			}
			r.sql.Keep(b, tenant, r.config.Node, r.config.Lease, r.config.Clock.Now(), written,
				func(i int, by string) { stored[list[i]] = by })
		}
	})
	return stored, err
}

// resolveMissing examines leases that could not be written. If another transaction has locked the row, the write is retried. Otherwise
// another attempt has begun, or the command has ended.
func (r *Runner) resolveMissing(ctx context.Context, missing map[string][]*leaseUpdate) (void bool) {
	held, err := r.leased(ctx, missing)
	if err != nil {
		r.config.Log.Warn("cannot ask for leases", "error", err)
	}
	void = true
	for _, list := range missing {
		for _, n := range list {
			switch {
			case held[n] || err != nil:
				r.retryLater([]*leaseUpdate{n})
				void = false
			case n.back == nil:
				// If the outcome was submitted, the lease may be missing because the commit ended it. The commit tells.
				r.mu.Lock()
				submitted := n.flight.submitted
				r.mu.Unlock()
				if !submitted {
					r.lost(n.flight)
				}
			}
		}
	}
	return void
}

// leased asks which of the updates' leases this node holds.
func (r *Runner) leased(ctx context.Context, notes map[string][]*leaseUpdate) (held map[*leaseUpdate]bool, err error) {
	held = map[*leaseUpdate]bool{}
	err = r.send(ctx, func(b *pgx.Batch) {
		for tenant, list := range notes {
			var k store.Keys
			for _, n := range list {
				k.AddOf(n.Ref, n.Attempt, n.created)
			}
			r.sql.Held(b, tenant, r.config.Node, &k, func(i int) { held[list[i]] = true })
		}
	})
	return held, err
}

// settings restrict the statements of a message to index scans, even if a connection planned them while the tables were empty, and make the
// commit durable. They apply to the transaction only, because another client may use the session next.
const settings = `SELECT set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true), ` + durable

// durable makes a transaction durable when it commits.
const durable = `set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
	ELSE current_setting('synchronous_commit') END, true)`

// send sends statements in one message, which is one transaction at READ COMMITTED, whatever the role's default is: a row that another node
// has just changed is not an error.
func (r *Runner) send(ctx context.Context, queue func(*pgx.Batch)) error {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	var b pgx.Batch
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	b.Queue(settings)
	queue(&b)
	b.Queue("COMMIT")
	return r.config.Pool.SendBatch(ctx, &b).Close()
}
