// Package verify detects changes of audit rows, instances and events that bypassed the engine. It recomputes each chain of audit rows
// and compares the instance and the events with the rows. docs/decisions/0012 explains what this proves. It only reads.
package verify

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/internal/kernel/store"
)

// Verifier verifies the audit of one schema.
type Verifier struct {
	q  store.Querier
	in func(sql string) string
}

// New returns a verifier that uses q. in inserts the schema's name into a statement.
func New(q store.Querier, in func(sql string) string) *Verifier {
	return &Verifier{q, in}
}

// The instance's own columns come with its first row only.
var chainsSQL = `
SELECT coalesce(i.id, a.instance), coalesce(i.version, 0), i.chain, coalesce(a.version, 0), coalesce(a.position, 0),
	coalesce(a.workflow, ''), coalesce(a.transition, ''), coalesce(a.from_state, ''), coalesce(a.to_state, ''), coalesce(a.actor, ''),
		coalesce(a.reason, ''),
	a.payload::text, a.data::text, a.payload_digest, a.data_digest, coalesce(` + audit.ScopeOf + `, ''), coalesce(a.key, ''),
	coalesce(a.cause, ''), coalesce(a.proof, ''), coalesce(a.at, 'epoch'), a.hash, a.rest_digest, a.events_digest,
		` + withFirst("i.workflow", "i.definition", "i.business_key", "i.state", "i.data::text",
	"i.attributes::text", "i.actors::text", "i.links::text", "i.open", "i.paused", "i.created_at", "i.updated_at") + `
FROM (` + store.Instances("$1") + ` AND ($2::uuid IS NULL OR id = $2)) i
FULL JOIN (` + audit.Rows("$1", "") + ` AND ($2::uuid IS NULL OR instance = $2)) a ON a.instance = i.id
ORDER BY 1, 4`

func withFirst(columns ...string) string {
	const first = "CASE WHEN a.version = 1 THEN "
	return first + strings.Join(columns, " END, "+first) + " END"
}

var logSQL = `
SELECT ` + outbox.HeadOf("$1") + `, count(*), count(DISTINCT position),
	coalesce(min(position), 0), coalesce(max(position), 0)
FROM (` + audit.Rows("$1", "") + `) a`

// Verify recomputes the chains of an instance, or of all instances of the tenant for the zero id, and reports the first broken row of
// each. Every column of an instance must match its rows. Positions are not part of the chain and must grow with the version. Stored
// events of the outbox must match their rows. For a whole tenant it also reports other events, and gaps in the positions from 1 to the
// last position of the log, with the zero instance. progress, which may be nil, is called with the number of checked rows.
func (t *Verifier) Verify(ctx context.Context, tenant string, instance uuid.UUID, progress func(entries int64)) (
	inspect.Verification, error,
) {
	var one *uuid.UUID
	if instance != uuid.Nil {
		one = &instance
	}
	rows, err := t.q.Query(ctx, t.in(chainsSQL), tenant, one)
	if err != nil {
		return inspect.Verification{}, fmt.Errorf("read audit chains: %w", err)
	}
	v := walk{tenant: tenant}
	for rows.Next() {
		if err := v.read(rows); err != nil {
			rows.Close()
			return v.out, fmt.Errorf("read audit chains: %w", err)
		}
		if progress != nil && v.out.Entries%10_000 == 0 {
			progress(v.out.Entries)
		}
	}
	if err := rows.Err(); err != nil {
		return v.out, fmt.Errorf("read audit chains: %w", err)
	}
	v.finish()
	if err := t.verifyEvents(ctx, &v.out, tenant, one); err != nil {
		return v.out, err
	}
	if one == nil {
		if err := t.verifyLog(ctx, &v); err != nil {
			return v.out, err
		}
	}
	v.out.Intact = len(v.out.Broken) == 0
	return v.out, nil
}

func (t *Verifier) verifyLog(ctx context.Context, v *walk) error {
	rows, _ := t.q.Query(ctx, t.in(logSQL), v.tenant) // ForEachRow returns its error
	var head, count, distinct, first, last int64
	_, err := pgx.ForEachRow(rows, []any{&head, &count, &distinct, &first, &last}, func() error {
		if count != head || distinct != head || last != head || (head > 0 && first != 1) {
			v.out.Broken = append(v.out.Broken, inspect.Break{Reason: fmt.Sprintf(
				"the log's head is %d, but there are %d rows with %d positions from %d to %d", head, count, distinct, first, last)})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	return nil
}
