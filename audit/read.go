package audit

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/transitions"
)

// Querier is what reads; a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Table reads the audit table of one schema.
type Table struct {
	q       Querier
	history string
	chains  string
	log     string
}

// New prepares to read with q. in puts the schema's name into a statement.
func New(q Querier, in func(sql string) string) *Table {
	return &Table{q: q, history: in(historySQL), chains: in(chainsSQL), log: in(logSQL)}
}

const historySQL = `
SELECT version, position, workflow, transition, coalesce(from_state, ''), to_state, actor, coalesce(reason, ''),
	payload::text, data::text, scope, key, at, hash
FROM pawl.audit
WHERE tenant = $1 AND instance = $2 AND version > $3
ORDER BY version
LIMIT $4`

// History returns the entries of an instance after a version, oldest first, at
// most limit.
func (t *Table) History(ctx context.Context, tenant string, instance uuid.UUID, after int64, limit int) ([]transitions.Entry, error) {
	found, err := t.q.Query(ctx, t.history, tenant, instance, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	entries, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (transitions.Entry, error) {
		e := transitions.Entry{Tenant: tenant, Instance: instance}
		var hash []byte
		err := row.Scan(&e.Version, &e.Position, &e.Workflow, &e.Transition, &e.From, &e.To, &e.Actor, &e.Reason,
			&e.Payload, &e.Data, &e.Scope, &e.Key, &e.At, &hash)
		copy(e.Hash[:], hash)
		e.At = e.At.UTC()
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return entries, nil
}
