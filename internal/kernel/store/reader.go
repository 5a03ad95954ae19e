package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Querier is a pool, a connection or a transaction.
type Querier = rows.Querier

// Reader reads instances and commands of one schema. Its methods return *workflow.Error.
type Reader struct {
	pool *pgxpool.Pool
	in   func(sql string) string
}

// NewReader returns a reader; in inserts the schema's name into a statement.
func NewReader(pool *pgxpool.Pool, in func(sql string) string) *Reader { return &Reader{pool, in} }

// plannedNow plans a statement at each execution. A plan made for an almost empty table would scan a full one.
const plannedNow = pgx.QueryExecModeCacheDescribe

// asBinary returns the arguments of a statement whose rows a [rows.Row] reads.
func asBinary(args ...any) []any {
	return slices.Concat([]any{plannedNow, pgx.QueryResultFormats{1}}, args)
}

// ask executes a statement whose rows a [rows.Row] reads.
func ask(ctx context.Context, by Querier, sql string, args ...any) (pgx.Rows, error) {
	return by.Query(ctx, sql, asBinary(args...)...)
}

// collect reads the rows of a statement. what names them in errors.
func collect[T any](ctx context.Context, by Querier, what string, read pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	found, _ := by.Query(ctx, sql, args...) // CollectRows returns its error
	list, err := pgx.CollectRows(found, read)
	if err != nil {
		return nil, ReadError(what, err)
	}
	return list, nil
}

// rowBy adapts a function of a [rows.Row] to pgx.
func rowBy[T any](read func(*rows.Row) (T, error)) pgx.RowToFunc[T] {
	return func(row pgx.CollectableRow) (T, error) {
		r := rows.Read(row.RawValues())
		v, err := read(r)
		if err == nil {
			err = r.Err()
		}
		return v, err
	}
}

var workflowOfSQL, instanceSQL = newest("i.workflow", "$1", "$2"), newest(instanceSelect, "$1", "$2")

// Instance reads an instance. Error: InstanceNotFound.
func (q *Reader) Instance(ctx context.Context, tenant string, id uuid.UUID) (transitions.Instance, error) {
	return q.InstanceBy(ctx, q.pool, tenant, id)
}

// InstanceBy is Instance in a transaction of the caller.
func (q *Reader) InstanceBy(ctx context.Context, by Querier, tenant string, id uuid.UUID) (transitions.Instance, error) {
	read := func(r *rows.Row) (transitions.Instance, error) { return mustInstance(r, tenant) }
	return oneInstance(ctx, by, id, read, q.in(instanceSQL), tenant, id)
}

// mustInstance is ReadInstance for a row that has one.
func mustInstance(r *rows.Row, tenant string) (transitions.Instance, error) {
	i, err := ReadInstance(r, tenant)
	if err != nil {
		return transitions.Instance{}, err
	}
	return *i, nil
}

// oneInstance reads the row of a statement about an instance.
func oneInstance[T any](ctx context.Context, by Querier, id uuid.UUID, read func(*rows.Row) (T, error), sql string, args ...any) (
	v T, err error,
) {
	found, err := ask(ctx, by, sql, args...)
	if err == nil {
		v, err = pgx.CollectExactlyOneRow(found, rowBy(read))
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return v, workflow.Errorf(workflow.InstanceNotFound, "there is no instance %s", id)
	case err != nil:
		return v, ReadError("instance", err)
	}
	return v, nil
}

// WorkflowOf reads the workflow of an instance, on the pool for nil. Error: InstanceNotFound.
func (q *Reader) WorkflowOf(ctx context.Context, by Querier, tenant string, id uuid.UUID) (string, error) {
	if by == nil {
		by = q.pool
	}
	return oneInstance(ctx, by, id, func(r *rows.Row) (string, error) { return r.Text(), nil }, q.in(workflowOfSQL), tenant, id)
}

// ReadError converts the error of a query into an *workflow.Error.
func ReadError(what string, err error) error {
	if refusal, ok := errors.AsType[*workflow.Error](err); ok {
		return refusal
	}
	code, message := workflow.Unavailable, "the database could not be read; try again"
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		code, message = workflow.TimedOut, "the database did not answer in time; try again"
	}
	return &workflow.Error{Code: code, Message: message, Cause: fmt.Errorf("read %s: %w", what, err)}
}
