package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Table reads and changes the state of the sinks of one schema, independent of the node that
// delivers to them. Changes are idempotent and safe while relays run; wake the relay after a
// change.
//
// All methods return *workflow.Error: NotFound for an unknown sink, InvalidRequest, Unavailable.
type Table struct {
	pool *pgxpool.Pool
	in   func(sql string) string
}

// NewTable returns a table. in inserts the schema's name into a statement.
func NewTable(pool *pgxpool.Pool, in func(sql string) string) *Table { return &Table{pool, in} }

// Pause stops delivery to a sink after the calls in progress. It is a no-op for a paused sink.
func (t *Table) Pause(ctx context.Context, sink, by, reason string) error {
	if err := checkWho(&by, reason); err != nil {
		return err
	}
	return t.change(ctx, sink, t.in(pauseSQL), by, reason)
}

// Resume ends a pause.
func (t *Table) Resume(ctx context.Context, sink string) error {
	return t.change(ctx, sink, t.in(resumeSQL))
}

// change runs a statement that reports whether the sink exists.
func (t *Table) change(ctx context.Context, sink, sql string, args ...any) error {
	if err := checkText("sink", sink, 255); err != nil {
		return err
	}
	var known bool
	if err := t.pool.QueryRow(ctx, sql, append([]any{sink}, args...)...).Scan(&known); err != nil {
		return writeError(err)
	}
	if !known {
		return noSink(sink)
	}
	return nil
}

// Move sets a sink's cursor in a tenant's log. Moving back delivers everything after the position
// again and deletes the dead letters after it. Moving forward skips the events in between and
// requires a reason. Calls in progress may still deliver their events. Other tenants are not
// affected.
func (t *Table) Move(ctx context.Context, sink, tenant string, position int64, by, reason string) error {
	if err := checkWho(&by, reason); err != nil {
		return err
	}
	if err := transitions.CheckTenant(tenant); err != nil {
		return err
	}
	tenant = cmp.Or(tenant, transitions.DefaultTenant)
	if err := checkText("sink", sink, 255); err != nil {
		return err
	}
	err := pgx.BeginFunc(ctx, t.pool, func(tx pgx.Tx) error {
		var known bool
		if err := tx.QueryRow(ctx, t.in(lockSQL), sink).Scan(&known); errors.Is(err, pgx.ErrNoRows) {
			return noSink(sink)
		} else if err != nil {
			return err
		}
		var from, head int64
		if err := tx.QueryRow(ctx, t.in(positionSQL), sink, tenant).Scan(&from, &head); err != nil {
			return err
		}
		switch {
		case position < 0 || position > head:
			return workflow.Errorf(workflow.InvalidRequest, "position %d is not between 0 and %d", position, head)
		case position > from && reason == "":
			return workflow.Errorf(workflow.InvalidRequest, "a reason is required to skip the events between %d and %d",
				from, position)
		case position == from:
			return nil
		}
		var b pgx.Batch
		b.Queue(t.in(reviseSQL), sink) // the holder reads that log again
		b.Queue(t.in(moveSQL), tenant, sink, position, from, by, reason)
		b.Queue(t.in(dropPastSQL), tenant, sink, position)
		return tx.SendBatch(ctx, &b).Close()
	})
	return writeError(err)
}

// Forget deletes a sink with its cursors and dead letters, so that retention no longer waits for
// it. Remove it from the configuration of every node first; otherwise a restarted node registers it
// again from the beginning. It returns InvalidRequest while a node delivers to the sink; pause it
// first.
func (t *Table) Forget(ctx context.Context, sink string) error {
	if err := checkText("sink", sink, 255); err != nil {
		return err
	}
	return writeError(pgx.BeginFunc(ctx, t.pool, func(tx pgx.Tx) error {
		var node string
		if err := tx.QueryRow(ctx, t.in(holderSQL), sink).Scan(&node); errors.Is(err, pgx.ErrNoRows) {
			return noSink(sink)
		} else if err != nil {
			return err
		}
		if node != "" {
			return workflow.Errorf(workflow.InvalidRequest, "node %s delivers to sink %q: remove it from the configuration first", node, sink)
		}
		var b pgx.Batch
		b.Queue(t.in(dropDeadSQL), sink)
		b.Queue(t.in(dropCursorsSQL), sink)
		b.Queue(t.in(dropSinkSQL), sink)
		return tx.SendBatch(ctx, &b).Close()
	}))
}

// Redrive queues dead letters for delivery with their original ids, in log order per instance. It
// returns their number. Without a status the filter selects waiting dead letters; skipped or
// redriven ones are selected by their status.
func (t *Table) Redrive(ctx context.Context, f inspect.DeadFilter, by, reason string) (int64, error) {
	return t.setStatus(ctx, f, inspect.DeadQueued, by, reason)
}

// Skip discards dead letters permanently and returns their number. Without a status the filter
// selects waiting dead letters; queued ones are selected by their status, and a call in progress
// may still deliver them. A reason is required.
func (t *Table) Skip(ctx context.Context, f inspect.DeadFilter, by, reason string) (int64, error) {
	if reason == "" {
		return 0, workflow.Errorf(workflow.InvalidRequest, "a reason is required to skip events")
	}
	return t.setStatus(ctx, f, inspect.DeadSkipped, by, reason)
}

const statusBatch = 1000

func (t *Table) setStatus(ctx context.Context, f inspect.DeadFilter, to inspect.DeadStatus, by, reason string) (count int64, err error) {
	if err := checkWho(&by, reason); err != nil {
		return 0, err
	}
	if err := checkFilter(&f); err != nil {
		return 0, err
	}
	switch {
	case to == inspect.DeadQueued && f.Status == inspect.DeadQueued:
		return 0, workflow.Errorf(workflow.InvalidRequest, "queued events are delivered without a redrive")
	case to == inspect.DeadSkipped && f.Status != inspect.DeadWaiting && f.Status != inspect.DeadQueued:
		return 0, workflow.Errorf(workflow.InvalidRequest, "%s events cannot be skipped", f.Status)
	}
	now, err := t.checkKnown(ctx, f.Sink)
	if err != nil {
		return 0, err
	}
	tenants := []string{f.Tenant}
	if f.Tenant == "" {
		tenants, err = collect(ctx, t, "dead letters", tenantsSQL, pgx.RowTo[string], f.Sink, string(f.Status))
	}
	for _, tenant := range tenants {
		f.Tenant = tenant
		for err == nil {
			var n int64
			n, err = t.setStatusOfSome(ctx, &f, now, to, by, reason)
			count += n
			if n < statusBatch {
				break
			}
		}
	}
	return count, writeError(err)
}

// setStatusOfSome changes some dead letters of a tenant that have not changed since. Like a relay,
// it locks the sink's row first. It replans the statement for the filter.
func (t *Table) setStatusOfSome(ctx context.Context, f *inspect.DeadFilter, since time.Time, to inspect.DeadStatus, by, reason string) (
	n int64, err error) {
	err = pgx.BeginFunc(ctx, t.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, t.in(reviseSQL), f.Sink); err != nil {
			return err
		}
		args := append([]any{pgx.QueryExecModeExec}, argsOf(f)...)
		done, err := tx.Exec(ctx, t.in(statusSQL), append(args, statusBatch, string(to), by, reason, since)...)
		n = done.RowsAffected()
		return err
	})
	return n, err
}

func checkFilter(f *inspect.DeadFilter) error {
	f.Status = cmp.Or(f.Status, inspect.DeadWaiting)
	switch f.Status {
	case inspect.DeadWaiting, inspect.DeadQueued, inspect.DeadRedriven, inspect.DeadSkipped:
	default:
		return workflow.Errorf(workflow.InvalidRequest, "status %q is not waiting, queued, redriven or skipped", f.Status)
	}
	if f.Position != 0 && f.Tenant == "" {
		return workflow.Errorf(workflow.InvalidRequest, "a position requires a tenant")
	}
	if err := cmp.Or(checkText("sink", f.Sink, 255), checkText("workflow", f.Workflow, 255), checkText("type", f.Type, 255)); err != nil {
		return err
	}
	if f.BusinessKey != "" {
		if f.Tenant == "" || f.Workflow == "" || f.Instance != uuid.Nil {
			return workflow.Errorf(workflow.InvalidRequest, "a business key requires workflow and tenant, and excludes an instance")
		}
		f.Instance = transitions.InstanceID(f.Tenant, f.Workflow, f.BusinessKey)
	}
	return transitions.CheckTenant(f.Tenant)
}

func argsOf(f *inspect.DeadFilter) []any {
	return []any{f.Sink, string(f.Status), orNull(f.Tenant), orNull(f.Workflow), orNull(f.Type), orNull(f.Instance), f.Position}
}

func checkWho(by *string, reason string) error {
	*by = cmp.Or(*by, transitions.DefaultActor)
	return cmp.Or(checkText("actor", *by, transitions.MaxActor), checkText("reason", reason, transitions.MaxReason))
}

func checkText(what, text string, limit int) error {
	if problem := transitions.TextProblem(text, limit); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the %s %s", what, problem)
	}
	return nil
}

func noSink(name string) error {
	return workflow.Errorf(workflow.NotFound, "there is no sink %q", name)
}

// unavailable wraps an error of the database. It returns nil and other errors as they are.
func unavailable(done, what string, err error) error {
	if _, ok := errors.AsType[*workflow.Error](err); ok || err == nil {
		return err
	}
	return &workflow.Error{Code: workflow.Unavailable, Message: "the database could not be " + done + "; try again",
		Cause: fmt.Errorf("%s: %w", what, err)}
}

func writeError(err error) error { return unavailable("written", "change a sink", err) }
