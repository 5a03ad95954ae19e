package inflight

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/transitions"
)

// write stores updates, by tenant. It reports whether all of them are stored or
// void, so that nothing has to be tried again soon.
func (r *Runner) write(ctx context.Context, notes map[string][]*leaseUpdate) bool {
	if len(notes) == 0 {
		return true
	}
	sent := time.Now()
	stored, err := r.store(ctx, notes)
	if refusesReport(err) {
		r.config.Log.Warn("reports of progress were dropped: the database does not take one of them", "error", err)
		for _, list := range notes {
			for _, n := range list {
				n.progress = ""
			}
		}
		stored, err = r.store(ctx, notes) // leases cannot wait for whoever reports
	}
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

// store writes updates. It returns those that it wrote, with who asked to stop
// them.
func (r *Runner) store(ctx context.Context, notes map[string][]*leaseUpdate) (stored map[*leaseUpdate]string, err error) {
	stored = map[*leaseUpdate]string{}
	err = r.send(ctx, func(b *pgx.Batch) {
		for tenant, list := range notes {
			b.Queue(r.sql.keep, r.columns(tenant, list)...).Query(func(rows pgx.Rows) error {
				var ord int
				var by string
				_, err := pgx.ForEachRow(rows, []any{&ord, &by}, func() error {
					stored[list[ord-1]] = by
					return nil
				})
				return err
			})
		}
	})
	return stored, err
}

// resolveMissing finds out about leases that could not be written. Where somebody else has
// locked the row nothing is lost, and it is tried again; else another attempt has
// begun, or the command has ended.
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
				r.leaseMissing(n.flight)
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
			k := keysOf(list)
			b.Queue(r.sql.held, tenant, r.config.Node, k.scopes, k.keys, k.attempts).Query(func(rows pgx.Rows) error {
				var ord int
				_, err := pgx.ForEachRow(rows, []any{&ord}, func() error {
					held[list[ord-1]] = true
					return nil
				})
				return err
			})
		}
	})
	return held, err
}

// columns are the parameters of a keep.
func (r *Runner) columns(tenant string, list []*leaseUpdate) []any {
	k := keysOf(list)
	reports, statuses, messages, reasons := make([]*string, len(list)), make([]*string, len(list)), make([]*string, len(list)), make([]*string, len(list))
	times, dues, failures := make([]*time.Time, len(list)), make([]*time.Time, len(list)), make([]int32, len(list))
	knew, unsure, untried := make([]bool, len(list)), make([]bool, len(list)), make([]bool, len(list))
	for i, n := range list {
		reports[i], knew[i] = orNull(n.progress), n.CancelledBy != ""
		if n.back == nil {
			continue
		}
		statuses[i], messages[i], reasons[i] = orNull(string(n.back.Status)), orNull(n.back.Failure), orNull(n.back.Stuck)
		if !n.runAt.IsZero() {
			times[i] = &n.runAt
		}
		if n.back.Failed {
			failures[i] = 1
		}
		unsure[i], untried[i] = n.back.Unsure, !n.back.Failed && !n.back.Unsure && n.back.Stuck == ""
		if !n.RunAt.IsZero() {
			dues[i] = &n.RunAt
		}
	}
	return []any{tenant, r.config.Node, k.scopes, k.keys, k.attempts, r.config.Clock.Now(), r.config.Lease.Microseconds(),
		reports, statuses, times, failures, messages, reasons, knew, unsure, untried, dues}
}

// keys name commands of one tenant, as the statements take them.
type keys struct {
	scopes, keys []string
	attempts     []int32
}

func keysOf(list []*leaseUpdate) (k keys) {
	for _, n := range list {
		k.add(n.Ref, n.Attempt)
	}
	return k
}

func (k *keys) add(ref transitions.Ref, attempt int) {
	k.scopes = append(k.scopes, ref.Scope)
	k.keys = append(k.keys, ref.Key)
	k.attempts = append(k.attempts, int32(attempt))
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// refusesReport reports whether the database did not accept a value. Only a
// report of progress can be so: Go's JSON and PostgreSQL's have other limits.
func refusesReport(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(e.Code, "22") || strings.HasPrefix(e.Code, "54"))
}

// settings keep the statements of a message to their index probes, also when a
// connection planned them while the tables were empty, and make what the node has
// begun durable. They are the transaction's own: a session may be somebody else's
// a moment later.
const settings = `SELECT set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
	set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)`

// send sends statements in one message, which is one transaction: one in which a
// row that another node has just changed is no error, whatever the role's default
// is.
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
