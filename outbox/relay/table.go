package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Querier is what a table works with; a pool or a connection.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Table reads and changes how the sinks of one schema stand, whoever delivers to
// them. Every change is safe beside a relay that runs; wake it afterwards. To
// make the same change again changes nothing.
//
// Errors of all methods are *workflow.Error: NotFound for a sink that no node has
// ever had, InvalidRequest, Unavailable.
type Table struct {
	q   Querier
	sql tableStatements
}

// NewTable prepares to work with q. in puts the schema's name into a statement.
func NewTable(q Querier, in func(sql string) string) *Table {
	return &Table{q: q, sql: newTableStatements(in)}
}

// Pause lets nothing more be delivered to a sink: what is under way comes to its
// end. A sink that is paused stays as it is.
func (t *Table) Pause(ctx context.Context, sink, by, reason string) error {
	if err := checkWho(&by, reason); err != nil {
		return err
	}
	return t.change(ctx, sink, t.sql.pause, by, reason)
}

// Resume ends a pause.
func (t *Table) Resume(ctx context.Context, sink string) error {
	return t.change(ctx, sink, t.sql.resume)
}

// change runs a statement about a sink that returns whether there is one.
func (t *Table) change(ctx context.Context, sink, sql string, args ...any) error {
	if err := checkSink(sink); err != nil {
		return err
	}
	var known bool
	if err := t.q.QueryRow(ctx, sql, append([]any{sink}, args...)...).Scan(&known); err != nil {
		return writeError(err)
	}
	if !known {
		return noSink(sink)
	}
	return nil
}

// Move puts a sink's cursor in a tenant's log to a position: back, so that
// everything after it is delivered again, or forward, so that what is in between
// never is; then a reason is required. Going back forgets the dead letters after
// the position, which will be delivered again with the rest. The deliveries that
// are under way may arrive all the same. No other tenant's notice it.
func (t *Table) Move(ctx context.Context, sink, tenant string, position int64, by, reason string) error {
	if err := checkWho(&by, reason); err != nil {
		return err
	}
	tenant, err := tenantOf(tenant)
	if err != nil {
		return err
	}
	if err := checkSink(sink); err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, t.q, func(tx pgx.Tx) error {
		var known bool
		if err := tx.QueryRow(ctx, t.sql.lock, sink).Scan(&known); errors.Is(err, pgx.ErrNoRows) {
			return noSink(sink)
		} else if err != nil {
			return err
		}
		var from, head int64
		if err := tx.QueryRow(ctx, t.sql.position, sink, tenant).Scan(&from, &head); err != nil {
			return err
		}
		switch {
		case position < 0 || position > head:
			return workflow.Errorf(workflow.InvalidRequest, "the position %d is not one of 0 to %d", position, head)
		case position > from && reason == "":
			return workflow.Errorf(workflow.InvalidRequest, "to go forward from %d to %d without the events in between needs a reason",
				from, position)
		case position == from:
			return nil
		}
		var b pgx.Batch
		b.Queue(t.sql.revise, sink) // the node that delivers reads that tenant's log anew
		b.Queue(t.sql.move, tenant, sink, position, from, by, reason)
		b.Queue(t.sql.dropPast, tenant, sink, position)
		return tx.SendBatch(ctx, &b).Close()
	})
	return writeError(err)
}

// Forget gives a sink up: its cursors and its dead letters are deleted, and
// retention waits for it no longer. It has to be out of the configuration of
// every node first: one that has it makes it known again when it is started, and
// it begins anew. InvalidRequest while a node delivers to it, which a pause ends.
func (t *Table) Forget(ctx context.Context, sink string) error {
	if err := checkSink(sink); err != nil {
		return err
	}
	return writeError(pgx.BeginFunc(ctx, t.q, func(tx pgx.Tx) error {
		var node string
		if err := tx.QueryRow(ctx, t.sql.holder, sink).Scan(&node); errors.Is(err, pgx.ErrNoRows) {
			return noSink(sink)
		} else if err != nil {
			return err
		}
		if node != "" {
			return workflow.Errorf(workflow.InvalidRequest, "node %s delivers to sink %q: take it out of the configuration first", node, sink)
		}
		var b pgx.Batch
		b.Queue(t.sql.dropDead, sink)
		b.Queue(t.sql.dropCursors, sink)
		b.Queue(t.sql.dropSink, sink)
		return tx.SendBatch(ctx, &b).Close()
	}))
}

// Redrive lets dead letters be delivered again, with the ids that they have, in
// the order of the log for each instance. It returns how many. Of a filter
// without a status these are the ones that wait; those that were skipped or
// redriven can be named by their status.
func (t *Table) Redrive(ctx context.Context, f inspect.DeadFilter, by, reason string) (int64, error) {
	return t.setStatus(ctx, f, inspect.DeadQueued, by, reason)
}

// Skip says of dead letters that they are never to be delivered. It returns how
// many. Of a filter without a status these are the ones that wait; those that are
// tried again can be named by theirs, and one that is under way may arrive all
// the same. A reason is required.
func (t *Table) Skip(ctx context.Context, f inspect.DeadFilter, by, reason string) (int64, error) {
	if reason == "" {
		return 0, workflow.Errorf(workflow.InvalidRequest, "to leave events out needs a reason")
	}
	return t.setStatus(ctx, f, inspect.DeadSkipped, by, reason)
}

// statusBatch is how many dead letters are changed in one transaction.
const statusBatch = 1000

// setStatus changes the status of dead letters.
func (t *Table) setStatus(ctx context.Context, f inspect.DeadFilter, to inspect.DeadStatus, by, reason string) (count int64, err error) {
	if err := checkWho(&by, reason); err != nil {
		return 0, err
	}
	if err := checkFilter(&f); err != nil {
		return 0, err
	}
	switch {
	case to == inspect.DeadQueued && f.Status == inspect.DeadQueued:
		return 0, workflow.Errorf(workflow.InvalidRequest, "what is queued is delivered without being redriven")
	case to == inspect.DeadSkipped && f.Status != inspect.DeadWaiting && f.Status != inspect.DeadQueued:
		return 0, workflow.Errorf(workflow.InvalidRequest, "what is %s cannot be skipped", f.Status)
	}
	tenants, now, err := t.tenants(ctx, &f)
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

// setStatusOfSome does so with some of one tenant that have not changed since. The
// sink's row is locked first, as a relay does before it writes. The statement is
// planned each time, for what the filter asks.
func (t *Table) setStatusOfSome(ctx context.Context, f *inspect.DeadFilter, since time.Time, to inspect.DeadStatus, by, reason string) (
	n int64, err error) {
	err = pgx.BeginFunc(ctx, t.q, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, t.sql.revise, f.Sink); err != nil {
			return err
		}
		args := append([]any{pgx.QueryExecModeExec}, argsOf(f)...)
		done, err := tx.Exec(ctx, t.sql.status, append(args, statusBatch, string(to), by, reason, since)...)
		n = done.RowsAffected()
		return err
	})
	return n, err
}

// tenants are those that have dead letters which a filter selects, and when that
// was.
func (t *Table) tenants(ctx context.Context, f *inspect.DeadFilter) (list []string, now time.Time, err error) {
	var known bool
	if err := t.q.QueryRow(ctx, t.sql.known, f.Sink).Scan(&known, &now); err != nil {
		return nil, now, err
	}
	switch {
	case !known:
		return nil, now, noSink(f.Sink)
	case f.Tenant != "":
		return []string{f.Tenant}, now, nil
	}
	rows, err := t.q.Query(ctx, t.sql.tenants, f.Sink, string(f.Status))
	if err != nil {
		return nil, now, err
	}
	list, err = pgx.CollectRows(rows, pgx.RowTo[string])
	return list, now, err
}

// checkFilter refuses a filter that selects nothing sensible, and completes it.
func checkFilter(f *inspect.DeadFilter) error {
	if f.Status == "" {
		f.Status = inspect.DeadWaiting
	}
	switch f.Status {
	case inspect.DeadWaiting, inspect.DeadQueued, inspect.DeadRedriven, inspect.DeadSkipped:
	default:
		return workflow.Errorf(workflow.InvalidRequest, "the status %q is not waiting, queued, redriven or skipped", f.Status)
	}
	if f.Position != 0 && f.Tenant == "" {
		return workflow.Errorf(workflow.InvalidRequest, "a position needs the tenant whose it is")
	}
	for name, text := range map[string]string{"sink": f.Sink, "workflow": f.Workflow, "type": f.Type} {
		if problem := transitions.TextProblem(text, 255); problem != "" {
			return workflow.Errorf(workflow.InvalidRequest, "the %s %s", name, problem)
		}
	}
	if f.BusinessKey != "" {
		if f.Tenant == "" || f.Workflow == "" || f.Instance != uuid.Nil {
			return workflow.Errorf(workflow.InvalidRequest, "a business key needs its workflow and its tenant, and no instance beside it")
		}
		f.Instance = transitions.InstanceID(f.Tenant, f.Workflow, f.BusinessKey)
	}
	return transitions.CheckTenant(f.Tenant)
}

// argsOf are the parameters of the statements that a filter goes into.
func argsOf(f *inspect.DeadFilter) []any {
	var instance *uuid.UUID
	if f.Instance != uuid.Nil {
		instance = &f.Instance
	}
	return []any{f.Sink, string(f.Status), orNull(f.Tenant), orNull(f.Workflow), orNull(f.Type), instance, f.Position}
}

func tenantOf(tenant string) (string, error) {
	if tenant == "" {
		tenant = transitions.DefaultTenant
	}
	return tenant, transitions.CheckTenant(tenant)
}

// checkWho refuses a name or a reason that cannot be stored, and completes the
// name.
func checkWho(by *string, reason string) error {
	if *by == "" {
		*by = transitions.DefaultActor
	}
	if problem := transitions.TextProblem(*by, transitions.MaxActor); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the actor %s", problem)
	}
	if problem := transitions.TextProblem(reason, transitions.MaxReason); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the reason %s", problem)
	}
	return nil
}

// checkSink refuses a name that cannot be stored.
func checkSink(name string) error {
	if problem := transitions.TextProblem(name, 255); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the sink %s", problem)
	}
	return nil
}

func noSink(name string) error {
	return workflow.Errorf(workflow.NotFound, "there is no sink %q", name)
}

// writeError is an error of a change, nil for nil.
func writeError(err error) error {
	if _, ok := errors.AsType[*workflow.Error](err); ok || err == nil {
		return err
	}
	cause := fmt.Errorf("change a sink: %w", err)
	return &workflow.Error{Code: workflow.Unavailable, Message: "the database could not be written; try again", Cause: cause}
}
