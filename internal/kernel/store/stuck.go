package store

import (
	"context"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
)

// stuckSQL reads a page of the commands that wait for an operator, without their requests, by the index of only those, or of an instance.
// The instance of a creation does not exist yet.
var stuckSQL = `SELECT ` + briefSelect + `, c.request->>'reason', c.request->>'proof',
	coalesce(i.business_key, c.request->>'business_key', '')
FROM (SELECT * FROM {pawl}.command s
	WHERE s.tenant = $1 AND s.stuck IS NOT NULL AND (s.updated_at, s.scope, s.key) > ($2, $3, $4) AND ($5 = '' OR s.workflow = $5)
		AND ($6::uuid IS NULL OR s.instance = $6)
	ORDER BY s.updated_at, s.scope, s.key LIMIT $7) c` + audit.Position("$1") + BusinessKey("$1", "c.instance") + `
ORDER BY c.updated_at, c.scope, c.key`

// Stuck lists the commands that wait for an operator, the longest waiting first. The filter requires a tenant and a limit, and takes an
// instance instead of a business key.
func (q *Reader) Stuck(ctx context.Context, f inspect.StuckFilter) (list []transitions.Record, more bool, err error) {
	list, err = collect(ctx, q.pool, "stuck commands", rowBy(func(row *rows.Row) (transitions.Record, error) {
		r, err := mustRecord(row, briefFields)
		r.Reason, r.Proof, r.BusinessKey = row.Text(), row.Text(), row.Text()
		return r, err
	}), q.in(stuckSQL), asBinary(f.Tenant, f.After.UpdatedAt, f.After.Scope, f.After.Key, f.Workflow, orNull(f.Instance), f.Limit+1)...)
	more = len(list) > f.Limit
	return list[:min(len(list), f.Limit)], more, err
}
