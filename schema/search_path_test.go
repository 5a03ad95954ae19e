package schema_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// A migration that replaces a function must repeat the setting.
func TestFunctionsHaveSafeSearchPath(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	loose := ask[[]string](t, pool, `SELECT coalesce(array_agg(p.oid::regprocedure::text ORDER BY 1), '{}') FROM pg_proc AS p
		WHERE p.pronamespace = 'pawl'::regnamespace AND ('search_path=pg_catalog, pg_temp' = ANY (p.proconfig)) IS NOT TRUE`)
	assert.Empty(t, loose, "the search path of these is their caller's")
}

// A role that may create functions in a schema of a caller's search path cannot execute code as that caller.
func TestFunctionsDoNotRunForeignCode(t *testing.T) {
	t.Parallel()
	pool := contract(t)
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
	assert.Equal(t, `"$user", shared`, ask[string](t, conn, "SELECT current_setting('search_path')"),
		"the caller's own search path now")
}
