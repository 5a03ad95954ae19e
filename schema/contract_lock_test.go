package schema_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

func TestResourceLockIsSharedWithSQL(t *testing.T) {
	t.Parallel()
	pool, e := served(t)
	inGo, inSQL := begin(t, pool), begin(t, pool)
	const resource = "settlement:m-1:2026-01-02"
	require.NoError(t, e.Lock(t.Context(), inGo, "", resource))
	assert.NoError(t, e.Lock(t.Context(), inGo, "", resource), "who has it gets it again")
	assert.False(t, ask[bool](t, inSQL, "SELECT pawl.try_lock($1)", resource), "SQL got it too")
	for _, free := range []string{"SELECT pawl.try_lock('settlement:m-1:2026-01-03')", "SELECT pawl.try_lock('" + resource + "', 'acme')",
		"SELECT pawl.try_lock('tsettlement:m-1:2026-01-02', 'defaul')"} {
		assert.Truef(t, ask[bool](t, inSQL, free), "%s is held", free)
	}
	waiting := background(t, pool, func(conn *pgxpool.Conn) (string, error) {
		_, err := conn.Exec(t.Context(), "SELECT pawl.lock($1)", resource)
		return "", err
	})
	commit(t, inGo)
	assert.NoError(t, (<-waiting).err)

	exec(t, inSQL, "SELECT pawl.lock($1)", resource)
	other := begin(t, pool)
	got, err := e.TryLock(t.Context(), other, "default", resource)
	assert.Truef(t, !got && err == nil, "got %v, %v", got, err)
	exec(t, other, "SET LOCAL lock_timeout = '10 ms'")
	wantCode(t, e.Lock(t.Context(), other, "", resource), workflow.Locked)
	require.NoError(t, inSQL.Rollback(t.Context()))
	got, err = e.TryLock(t.Context(), begin(t, pool), "", resource)
	assert.Truef(t, got && err == nil, "got %v, %v", got, err)
}

func TestLockRejectsInvalidNames(t *testing.T) {
	t.Parallel()
	pool, e := served(t)
	tx := begin(t, pool)
	for _, tt := range []struct{ tenant, resource string }{{"", ""}, {"", strings.Repeat("x", 256)}, {"", "\x00"},
		{strings.Repeat("x", 65), "r"}} {
		wantCode(t, e.Lock(t.Context(), tx, tt.tenant, tt.resource), workflow.InvalidRequest)
		wantCode(t, errOf(e.TryLock(t.Context(), tx, tt.tenant, tt.resource)), workflow.InvalidRequest)
	}
	for _, args := range []string{"NULL", "''", "repeat('x', 256)", "'r', ''", "'r', repeat('x', 65)"} {
		refused(t, pool, "22023", "SELECT pawl.lock("+args+")")
		refused(t, pool, "22023", "SELECT pawl.try_lock("+args+")")
	}
}

// A migration that replaces a function must repeat the setting.
func TestFunctionsHaveSafeSearchPath(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	loose := ask[[]string](t, pool, `SELECT coalesce(array_agg(p.oid::regprocedure::text ORDER BY 1), '{}') FROM pg_proc AS p
		WHERE p.pronamespace = 'pawl'::regnamespace AND ('search_path=pg_catalog, pg_temp' = ANY (p.proconfig)) IS NOT TRUE`)
	assert.Empty(t, loose, "the search path of these is their caller's")
}

// A role that may create functions in a schema of a caller's search path cannot execute code as that caller.
func TestFunctionsDoNotRunForeignCode(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	exec(t, pool, "CREATE SCHEMA shared")
	for _, args := range []string{"text, int, text, text", "text, name, int", "text, json, json", "text, text, text, text"} {
		exec(t, pool, "CREATE FUNCTION shared.format("+args+") RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE 'somebody else''s "+
			"code' USING ERRCODE = 'XX001'; END $$")
	}
	conn, err := pgtest.DirectTo(t, pool).Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	exec(t, conn, `SET search_path = "$user", shared`)
	exec(t, conn, "SELECT pawl.lock('settlement')")
	wantClaim(t, conn, "k", "x", "new 1")
	refused(t, conn, "P4002", "SELECT pawl.claim('s', 'k', sha256('y'))")
	refused(t, conn, "P4029", "SELECT pawl.claim('s', 'k', sha256('x'))")
	assert.Equal(t, `"$user", shared`, ask[string](t, conn, "SELECT current_setting('search_path')"), "the caller's own search path now")
}
