package outbox

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/transitions"
)

// Querier is what reads; a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Table reads the log of one schema.
type Table struct {
	q      Querier
	source string
	after  string
	head   string
	heads  string
	first  string
}

// New prepares to read with q. in puts the schema's name into a statement. source
// is that of the events, see [transitions.Event].
func New(q Querier, in func(sql string) string, source string) *Table {
	return &Table{q: q, source: source, after: in(afterSQL), head: in(headSQL), heads: in(headsSQL), first: in(firstSQL)}
}

// The limit counts positions, not rows, so that a batch never ends between two
// events of one transition.
const afterSQL = `
SELECT position, type, ordinal, workflow, instance, version, transition, state, at, payload::text
FROM pawl.outbox
WHERE tenant = $1 AND position > $2 AND position <= $3
ORDER BY position, ordinal`

const headSQL = `SELECT coalesce((SELECT head FROM pawl.log WHERE tenant = $1), 0)`

// After returns the events of the next transitions after a position, at most
// limit transitions, in order.
func (t *Table) After(ctx context.Context, tenant string, position int64, limit int) ([]transitions.Event, error) {
	to := position + int64(limit)
	if to < position {
		to = math.MaxInt64
	}
	found, err := t.q.Query(ctx, t.after, tenant, position, to)
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	events, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (transitions.Event, error) {
		e := transitions.Event{Source: t.source, Tenant: tenant}
		err := row.Scan(&e.Position, &e.Type, &e.Ordinal, &e.Workflow, &e.Instance, &e.Version, &e.Transition, &e.State, &e.At, &e.Payload)
		e.At = e.At.UTC()
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	return events, nil
}

// firstSQL finds the first position after another that is still there; if there
// is none, the one after the head. Parameters: tenant, position.
const firstSQL = `
SELECT coalesce((SELECT position FROM pawl.outbox WHERE tenant = $1 AND position > $2 ORDER BY position LIMIT 1),
	(SELECT head FROM pawl.log WHERE tenant = $1) + 1, 1)`

// First is the first position after another whose events are still there, or may
// be one day: if there is none, the one after the head. Where it is not the next
// one, retention has removed what was in between.
func (t *Table) First(ctx context.Context, tenant string, after int64) (int64, error) {
	var first int64
	if err := t.q.QueryRow(ctx, t.first, tenant, after).Scan(&first); err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	return first, nil
}

// Head is the position of the tenant's newest transition, 0 for an empty log.
func (t *Table) Head(ctx context.Context, tenant string) (int64, error) {
	var head int64
	if err := t.q.QueryRow(ctx, t.head, tenant).Scan(&head); err != nil {
		return 0, fmt.Errorf("read log head: %w", err)
	}
	return head, nil
}

const headsSQL = `SELECT tenant, head FROM pawl.log WHERE tenant = ANY($1)`

// Heads are the heads of several tenants' logs. An empty log has none.
func (t *Table) Heads(ctx context.Context, tenants []string) (map[string]int64, error) {
	found, err := t.q.Query(ctx, t.heads, tenants)
	if err != nil {
		return nil, fmt.Errorf("read log heads: %w", err)
	}
	heads := make(map[string]int64, len(tenants))
	var tenant string
	var head int64
	if _, err := pgx.ForEachRow(found, []any{&tenant, &head}, func() error {
		heads[tenant] = head
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read log heads: %w", err)
	}
	return heads, nil
}
