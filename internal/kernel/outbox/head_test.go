package outbox_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// An old snapshot keeps all versions of a head. To move it, and to read it, takes as many pages as without.
func TestLastPosition_FewPages(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectPool(t)
	snapshot, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer func() { _ = snapshot.Rollback(context.Background()) }()
	_, err = snapshot.Exec(t.Context(), "SELECT FROM pawl.log")
	require.NoError(t, err)
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	plain, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer plain.Release()
	on := func(conn *pgxpool.Conn, sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	exec := func(sql string) { t.Helper(); on(conn, sql) }
	// A session that has made its plans while the log was new, and keeps them.
	exec("ALTER TABLE pawl.log SET (autovacuum_enabled = off); SELECT pawl.advance('acme', 1); ANALYZE pawl.log")
	on(plain, "SET plan_cache_mode = force_generic_plan")
	const execute = "EXECUTE head('acme')"
	on(plain, "PREPARE head(text) AS SELECT "+same(outbox.HeadOf("$1"))+"; "+execute)
	exec("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off") // as the pipeline does
	const most = 25
	check := func(when string) {
		t.Helper()
		for name, sql := range map[string]string{
			"move": "SELECT pawl.advance('acme', 1)",
			"read": "SELECT " + outbox.HeadOf("'acme'"),
			"held": "SELECT FROM (" + outbox.HeldHeads + ") AS held",
		} {
			var args []any
			if name == "held" {
				args = append(args, []string{"acme"})
			}
			exec("SELECT pawl.advance('acme', 1)") // what a session looks up once is not counted
			pgtest.Pages(t, conn, sql, args...)
			got := pgtest.Pages(t, conn, sql, args...)
			assert.Truef(t, got <= most, "%s, %s: %d pages were read", when, name, got)
		}
		pgtest.Pages(t, plain, execute, pgx.QueryExecModeSimpleProtocol)
		got := pgtest.Pages(t, plain, execute, pgx.QueryExecModeSimpleProtocol)
		assert.Truef(t, got <= most, "%s, read by a session that keeps its plan: %d pages were read", when, got)
	}
	check("a new log")
	exec("DO $$ BEGIN FOR n IN 1..30000 LOOP PERFORM pawl.advance('acme', 1); END LOOP; END $$")
	var pages int
	err = conn.QueryRow(t.Context(),
		"SELECT pg_relation_size('pawl.log') / current_setting('block_size')::int").Scan(&pages)
	require.Truef(t, err == nil && pages >= 4*most, "the versions are kept on %d pages, %v", pages, err)
	check("30,000 versions")
	exec("VACUUM ANALYZE pawl.log")
	check("after a vacuum")
	exec("INSERT INTO pawl.log SELECT 'tenant ' || n, 1 FROM generate_series(1, 10000) AS n; ANALYZE pawl.log")
	check("among others")
}
