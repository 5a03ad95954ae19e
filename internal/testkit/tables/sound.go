package tables

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// unsound finds rows that have not what belongs to them, by what is wrong with them.
var unsound = map[string]string{
	"transitions without their event": `SELECT count(*) FROM pawl.audit a LEFT JOIN pawl.outbox o
		ON o.tenant = a.tenant AND o.position = a.position AND o.ordinal = 0 AND o.instance = a.instance AND o.version = a.version
		WHERE o.position IS NULL`,
	"events without their transition": `SELECT count(*) FROM pawl.outbox o LEFT JOIN pawl.audit a
		ON a.tenant = o.tenant AND a.position = o.position WHERE a.position IS NULL`,
	"transitions without their command": `SELECT count(*) FROM pawl.audit a LEFT JOIN pawl.command c
		ON c.tenant = a.tenant AND c.scope = pawl.scope_of(a) AND c.key = a.key AND c.instance = a.instance
		AND coalesce(c.version >= a.version, c.status = 'failed_final') WHERE c.key IS NULL`,
	"commands without their transition": `SELECT count(*) FROM pawl.command c LEFT JOIN pawl.audit a
		ON a.tenant = c.tenant AND a.instance = c.instance AND a.version = c.version
		WHERE c.version IS NOT NULL AND a.version IS NULL`,
}

// WantSound fails the test unless every transition has its events and its command, and every command that made a
// transition has its audit row. It is for databases from which nothing was removed. That the chains are whole is for the
// engine's Verify to say.
func WantSound(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	for what, sql := range unsound {
		var n int64
		if err := pool.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Errorf("%s: %v", what, err)
		} else if n > 0 {
			t.Errorf("%d %s", n, what)
		}
	}
}
