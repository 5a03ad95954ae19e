package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
)

// stuckSQL is a page of the commands that wait for an operator, without their
// requests, in the order of the index that holds only those, or those of an instance
// by the index for that. The instance of a creation is not there yet.
var stuckSQL = `SELECT ` + briefSelect + `, c.request->>'reason', c.request->>'proof',
	coalesce(i.business_key, c.request->>'business_key', '')
FROM (SELECT * FROM {pawl}.command s
	WHERE s.tenant = $1 AND s.stuck IS NOT NULL AND (s.updated_at, s.scope, s.key) > ($2, $3, $4) AND ($5 = '' OR s.workflow = $5)
		AND ($6::uuid IS NULL OR s.instance = $6)
	ORDER BY s.updated_at, s.scope, s.key LIMIT $7) c` + audit.Position("$1") + BusinessKey("$1", "c.instance") + `
ORDER BY c.updated_at, c.scope, c.key`

// Stuck lists the commands that wait for an operator, the longest waiting first, and
// says whether there are more. The filter is complete: it has a tenant and a limit,
// and an instance instead of a business key.
func (q *Reader) Stuck(ctx context.Context, f inspect.StuckFilter) (list []transitions.Record, more bool, err error) {
	var instance *uuid.UUID
	if f.Instance != uuid.Nil {
		instance = &f.Instance
	}
	found, err := ask(ctx, q.pool, q.sql.stuck, f.Tenant, f.After.UpdatedAt, f.After.Scope, f.After.Key, f.Workflow, instance, f.Limit+1)
	if err == nil {
		list, err = pgx.CollectRows(found, rowBy(func(row *rows.Row) (transitions.Record, error) {
			r, err := mustRecord(row, briefFields)
			r.Reason, r.Proof, r.BusinessKey = row.Text(), row.Text(), row.Text()
			return r, err
		}))
	}
	if err != nil {
		return nil, false, ReadError("stuck commands", err)
	}
	if len(list) > f.Limit {
		return list[:f.Limit], true, nil
	}
	return list, false, nil
}
