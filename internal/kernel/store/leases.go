package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
)

// Leases counts the commands in flight that each node has leased, of a tenant, or of all tenants for "". It reads at most as many as are
// counted of a kind, the first to expire; whole reports that there are no more.
func (q *Reader) Leases(ctx context.Context, tenant string) (held map[string]int64, whole bool, err error) {
	held, whole = map[string]int64{}, true
	err = q.listing(ctx, "leases", func(l *lister) error {
		var s query
		s.add("SELECT claimed_by, count(*) FILTER (WHERE %s = '' OR tenant = %s), count(*) FROM (", tenant, tenant)
		s.add("SELECT claimed_by, tenant FROM {pawl}.command WHERE locked_until > '-infinity' ORDER BY locked_until LIMIT %s", inspect.MaxCounted+1)
		s.WriteString(") AS leased GROUP BY claimed_by")
		found, _ := l.query(ctx, &s) // ForEachRow returns its error
		var node string
		var leases, seen, all int64
		_, err := pgx.ForEachRow(found, []any{&node, &leases, &seen}, func() error {
			held[node] = leases
			all += seen
			return nil
		})
		whole = all <= inspect.MaxCounted
		return err
	})
	return held, whole, err
}
