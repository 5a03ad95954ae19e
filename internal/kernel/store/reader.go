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

// Querier is a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Reader reads instances and commands of one schema. The errors of its methods are
// *workflow.Error.
type Reader struct {
	pool *pgxpool.Pool
	in   func(sql string) string
	sql  statements
}

// statements are those of a Reader that are always the same.
type statements struct {
	instance, workflowOf, businessKey, view, record, records, undoing, stuck, keys, commandSize, countFinished string
}

// NewReader prepares to read. in puts the schema's name into a statement.
func NewReader(pool *pgxpool.Pool, in func(sql string) string) *Reader {
	return &Reader{pool: pool, in: in, sql: statements{
		instance:      in(instanceSQL),
		workflowOf:    in(workflowOfSQL),
		businessKey:   in(newest("coalesce(i.business_key, '')", "$1", "$2")),
		view:          in(viewSQL),
		record:        in(recordSQL),
		records:       in(recordsSQL),
		undoing:       in(undoingSQL),
		stuck:         in(stuckSQL),
		keys:          in(KeysSQL),
		commandSize:   in(commandSizeSQL),
		countFinished: in(`SELECT count(*) ` + finishedSQL),
	}}
}

// plannedNow has a statement planned whenever it runs. A plan that was made when
// the table was all but empty, and kept, would scan it when it is full.
const plannedNow = pgx.QueryExecModeCacheDescribe

// ask runs a statement whose rows are read in binary form, by a [rows.Row].
func ask(ctx context.Context, by Querier, sql string, args ...any) (pgx.Rows, error) {
	return by.Query(ctx, sql, slices.Concat([]any{plannedNow, pgx.QueryResultFormats{1}}, args)...)
}

// rowBy makes a function of a row one of pgx.
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

// InstanceBy is Instance, by a transaction of the caller's.
func (q *Reader) InstanceBy(ctx context.Context, by Querier, tenant string, id uuid.UUID) (transitions.Instance, error) {
	read := func(r *rows.Row) (transitions.Instance, error) { return mustInstance(r, tenant) }
	return oneInstance(ctx, by, id, read, q.sql.instance, tenant, id)
}

// mustInstance reads an instance of a row that has one.
func mustInstance(r *rows.Row, tenant string) (transitions.Instance, error) {
	i, err := ReadInstance(r, tenant)
	if err != nil {
		return transitions.Instance{}, err
	}
	return *i, nil
}

// oneInstance reads what a statement tells of an instance.
func oneInstance[T any](ctx context.Context, by Querier, id uuid.UUID, read func(*rows.Row) (T, error), sql string, args ...any) (
	v T, err error,
) {
	found, err := ask(ctx, by, sql, args...)
	if err == nil {
		v, err = pgx.CollectExactlyOneRow(found, rowBy(read))
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return v, errNoInstance(id)
	case err != nil:
		return v, ReadError("instance", err)
	}
	return v, nil
}

func errNoInstance(id uuid.UUID) error {
	return workflow.Errorf(workflow.InstanceNotFound, "there is no instance %s", id)
}

// WorkflowOf reads the workflow of an instance, on the pool for nil. Error: InstanceNotFound.
func (q *Reader) WorkflowOf(ctx context.Context, by Querier, tenant string, id uuid.UUID) (string, error) {
	if by == nil {
		by = q.pool
	}
	return oneInstance(ctx, by, id, func(r *rows.Row) (string, error) { return r.Text(), nil }, q.sql.workflowOf, tenant, id)
}

// ReadError is a failed query as the caller may see it. A refusal is one already.
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
