package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/outbox/relay"
)

// settledFor is how long dead letters and messages are kept that an operator has settled.
const settledFor = 30 * 24 * time.Hour

// partition is a part of the outbox or of the history of commands.
type partition struct {
	inspect.Partition
	events    bool // of the outbox
	detaching bool // somebody has begun to detach it
	owned     bool // by the role of this node
}

// parent is the table that it is a part of.
func (p *partition) parent() string {
	if p.events {
		return "outbox"
	}
	return "command_history"
}

// needless reports whether the partition is past its age and no longer needed.
func (p *partition) needless() bool { return p.Over && p.Held == "" }

// tend removes what is past its age, and makes partitions ahead. One does not depend on the other, but a partition that is half removed is
// in the way of its like.
func (r *Runner) tend(ctx context.Context) error {
	now := r.config.Clock.Now()
	removed := r.removeOld(ctx, now)
	if errors.Is(removed, errLost) {
		return removed
	}
	_, made := r.exec(ctx, aheadSQL, now)
	if made != nil {
		made = fmt.Errorf("make partitions: %w", made)
	}
	return errors.Join(removed, made, r.forgetSettled(ctx, now.Add(-settledFor)))
}

// removeOld removes the partitions that are past their age, and those of which the removal has begun.
func (r *Runner) removeOld(ctx context.Context, now time.Time) error {
	list, err := r.partitions(ctx)
	if err != nil {
		return err
	}
	if err := r.judge(ctx, list, now); err != nil {
		return err
	}
	// A table has one partition at a time that is being detached.
	begun, rest := list[:0:0], list[:0:0]
	for _, p := range list {
		if p.detaching {
			begun = append(begun, p)
		} else if p.Detached || p.needless() {
			rest = append(rest, p)
		}
	}
	var failed []error
	stuck := map[string]bool{} // tables
	for _, p := range append(begun, rest...) {
		if stuck[p.parent()] {
			continue
		}
		if err := r.keep(ctx); err != nil {
			return err
		}
		if err := r.remove(ctx, p, now); err != nil {
			failed = append(failed, err)
			stuck[p.parent()] = true
		}
	}
	return errors.Join(failed...)
}

// partitions lists them as the database has them.
func (r *Runner) partitions(ctx context.Context) ([]partition, error) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	rows, err := r.config.Pool.Query(ctx, r.config.In(listSQL), pgx.QueryExecModeExec)
	if err != nil {
		return nil, fmt.Errorf("list partitions: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p partition, err error) {
		err = row.Scan(&p.Name, &p.events, &p.detaching, &p.Detached, &p.owned, &p.From, &p.To, &p.Rows, &p.Bytes)
		p.From, p.To = p.From.UTC(), p.To.UTC()
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("list partitions: %w", err)
	}
	return list, nil
}

// judge finds out which partitions are past their age, and what holds those.
func (r *Runner) judge(ctx context.Context, list []partition, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	var kept *time.Time
	err := r.config.Pool.QueryRow(ctx, r.config.In(store.HistoryKeptSQL), pgx.QueryExecModeExec, now).Scan(&kept)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("ask how long the history is kept: %w", err)
	}
	for i := range list {
		p := &list[i]
		if !p.events {
			p.Over = kept != nil && !p.To.After(*kept)
			continue
		}
		if p.Over = !p.To.After(now.Add(-r.config.Outbox)); !p.Over {
			continue
		}
		p.Held, err = relay.Holds(ctx, r.config.Pool, r.config.In, p.Name)
		if e, ok := errors.AsType[*pgconn.PgError](err); err != nil && (!ok || e.Code != "42P01") { // dropped since it was listed
			return fmt.Errorf("ask what holds %s: %w", p.Name, err)
		}
	}
	return nil
}

// remove detaches a partition and drops it. Detaching waits for the transactions that may be reading it, and blocks no other; if it is
// interrupted, the next turn continues.
//
// Only the contents of a detached partition are final: a transaction that was waited for may have added an event. So the partition is
// judged once more, and attached again if it is still needed, even if another session detached it.
func (r *Runner) remove(ctx context.Context, p partition, now time.Time) error {
	if !p.Detached {
		if err := r.detach(ctx, p); err != nil {
			return fmt.Errorf("detach %s: %w", p.Name, err)
		}
	}
	again := []partition{p}
	if err := r.judge(ctx, again, now); err != nil {
		return err
	}
	if !again[0].needless() {
		if _, err := r.exec(ctx, backSQL, p.parent(), p.From); err != nil {
			return fmt.Errorf("attach %s again: %w", p.Name, err)
		}
		r.config.Log.Warn("retention attached a partition again that is still needed", "partition", p.Name, "held", again[0].Held)
		return nil
	}
	if _, err := r.exec(ctx, dropSQL, p.Name); err != nil {
		return fmt.Errorf("drop %s: %w", p.Name, err)
	}
	r.stats.count(func(s *Stats) { s.Dropped++ })
	r.config.Log.Info("retention dropped a partition", "partition", p.Name, "bytes", p.Bytes)
	return nil
}

// detach takes a partition out of its table. A role that owns nothing does it by a function, which waits only briefly for the
// lock that it needs.
func (r *Runner) detach(ctx context.Context, p partition) error {
	if !p.owned {
		_, err := r.exec(ctx, detachSQL, p.Name)
		return err
	}
	how := "CONCURRENTLY"
	if p.detaching {
		how = "FINALIZE"
	}
	name := pgx.Identifier{p.Name}.Sanitize()
	_, err := r.exec(ctx, fmt.Sprintf("ALTER TABLE {pawl}.%s DETACH PARTITION {pawl}.%s %s", p.parent(), name, how))
	return err
}

// forgetSettled deletes dead letters and messages that were settled before a time, and expired kept messages.
func (r *Runner) forgetSettled(ctx context.Context, before time.Time) error {
	letters := func(ctx context.Context) (int64, error) {
		return relay.ForgetSettled(ctx, r.config.Pool, r.config.In, before, r.config.Batch)
	}
	messages := func(ctx context.Context) (int64, error) { return r.messages.Forget(ctx, before, r.config.Batch) }
	kept := func(ctx context.Context) (int64, error) {
		return r.messages.ForgetKept(ctx, r.config.Clock.Now(), r.config.Batch)
	}
	for _, forget := range []func(context.Context) (int64, error){letters, messages, kept} {
		for more := true; more; {
			statement, cancel := context.WithTimeout(ctx, budget)
			some, err := forget(statement)
			cancel()
			if err != nil {
				return fmt.Errorf("forget what is settled: %w", err)
			}
			if more = some >= int64(r.config.Batch); more {
				if err := r.keep(ctx); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
