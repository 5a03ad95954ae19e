package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// queries reads instances and commands.
type queries struct {
	pool                  *pgxpool.Pool
	in                    func(sql string) string
	instanceSQL, nameSQL  string
	recordSQL, recordsSQL string
}

const (
	instanceColumns = `id, workflow, definition, coalesce(business_key, ''), state, version, data::text,
	attributes, actors::text, links::text, paused, open, chain, created_at, updated_at`

	instanceSQL   = `SELECT ` + instanceColumns + ` FROM pawl.instance WHERE tenant = $1 AND id = $2`
	workflowOfSQL = `SELECT workflow FROM pawl.instance WHERE tenant = $1 AND id = $2`
)

func newQueries(pool *pgxpool.Pool, in func(string) string) *queries {
	return &queries{pool: pool, in: in, instanceSQL: in(instanceSQL), nameSQL: in(workflowOfSQL),
		recordSQL: in(recordSQL), recordsSQL: in(recordsSQL)}
}

func (q *queries) instance(ctx context.Context, tenant string, id uuid.UUID) (transitions.Instance, error) {
	found, err := q.pool.Query(ctx, q.instanceSQL, tenant, id)
	if err != nil {
		return transitions.Instance{}, readError("instance", err)
	}
	inst, err := pgx.CollectExactlyOneRow(found, func(row pgx.CollectableRow) (transitions.Instance, error) {
		return scanInstance(row, tenant)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return transitions.Instance{}, errNoInstance(id)
	}
	if err != nil {
		return transitions.Instance{}, readError("instance", err)
	}
	return inst, nil
}

func errNoInstance(id uuid.UUID) error {
	return workflow.Errorf(workflow.InstanceNotFound, "there is no instance %s", id)
}

func (q *queries) workflowOf(ctx context.Context, by querier, tenant string, id uuid.UUID) (string, error) {
	var name string
	err := by.QueryRow(ctx, q.nameSQL, tenant, id).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", errNoInstance(id)
	}
	if err != nil {
		return "", readError("instance", err)
	}
	return name, nil
}

// scanInstance reads instanceColumns, and then more.
func scanInstance(row pgx.CollectableRow, tenant string, more ...any) (transitions.Instance, error) {
	i := transitions.Instance{Tenant: tenant}
	var actors, links, chain []byte
	columns := []any{&i.ID, &i.Workflow, &i.Definition, &i.BusinessKey, &i.State, &i.Version, &i.Data,
		&i.Attributes, &actors, &links, &i.Paused, &i.Open, &chain, &i.CreatedAt, &i.UpdatedAt}
	err := row.Scan(append(columns, more...)...)
	if err != nil {
		return i, err
	}
	copy(i.Chain[:], chain)
	i.CreatedAt, i.UpdatedAt = i.CreatedAt.UTC(), i.UpdatedAt.UTC()
	if actors != nil {
		if err = json.Unmarshal(actors, &i.Actors); err != nil {
			return i, err
		}
	}
	if links != nil {
		err = json.Unmarshal(links, &i.Links)
	}
	return i, err
}

// readError is a failed query as the caller may see it. A refusal is one already.
func readError(what string, err error) error {
	if refusal, ok := errors.AsType[*workflow.Error](err); ok {
		return refusal
	}
	code, message := workflow.Unavailable, "the database could not be read; try again"
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		code, message = workflow.TimedOut, "the database did not answer in time; try again"
	}
	return &workflow.Error{Code: code, Message: message, Cause: fmt.Errorf("read %s: %w", what, err)}
}
