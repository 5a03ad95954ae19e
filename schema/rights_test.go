package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// connected returns a pool for a connection string.
func connected(t *testing.T, as string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), as)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func TestGrant_AddsMissingRights(t *testing.T) {
	t.Parallel()
	for _, name := range []string{Default, "shop_2"} {
		pool := pgtest.DirectTo(t, migrated(t, name))
		role, as := pgtest.Role(t, pool)
		node := connected(t, as)
		want := fmt.Sprintf(`on schema %s: USAGE on the schema, and `, name)
		err := CheckRights(t.Context(), node, name)
		assert.Truef(t, errors.Is(err, ErrRights) && strings.Contains(err.Error(), want) &&
			strings.HasSuffix(err.Error(), `run "migrate grants `+role+`"`), "without rights: %v", err)
		planned, err := PlanGrants(t.Context(), pool, name, role)
		require.NoError(t, err)
		for left := range planned { // each statement is needed
			require.NoError(t, errOf(pool.Exec(t.Context(), "DROP OWNED BY "+role)))
			for i, sql := range planned {
				if i == left {
					continue
				}
				require.NoError(t, errOf(pool.Exec(t.Context(), sql)))
			}
			assert.ErrorIsf(t, CheckRights(t.Context(), node, name), ErrRights, "without %s", planned[left])
		}
		applied, err := Grant(t.Context(), pool, name, role)
		assert.Truef(t, err == nil && slices.Equal(applied, planned), "applied %q, not %q: %v", applied, planned, err)
		assert.NoError(t, CheckRights(t.Context(), node, name))
		n, err := Migrate(t.Context(), node, name)
		assert.Truef(t, n == 0 && err == nil, "nothing is pending: applied %d, %v", n, err)
	}
}

// Partitions created later by make_partition are readable by the roles that can read the table.
func TestGrant_CoversLaterPartitions(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectTo(t, migrated(t, Default))
	role, as := pgtest.Role(t, pool)
	require.NoError(t, errOf(Grant(t.Context(), pool, Default, role)))
	node := connected(t, as)
	for by, month := range map[*pgxpool.Pool]string{pool: "7 months", node: "8 months"} {
		for _, parent := range []string{"outbox", "command_history"} {
			assert.Truef(t, query[bool](t, by, "SELECT pawl.make_partition($1, now() + $2::text::interval)", parent, month),
				"no partition of %s in %s", parent, month)
		}
	}
	assert.NoError(t, CheckRights(t.Context(), node, Default))
}

// The rights name every table and sequence, so that a migration that adds one must decide about it.
func TestGrants_NameEveryTable(t *testing.T) {
	t.Parallel()
	pool := migrated(t, Default)
	var named []string
	for _, n := range needed {
		if n.kind == tables || n.kind == sequences {
			named = append(named, n.objects...)
		}
	}
	slices.Sort(named)
	rows, err := pool.Query(t.Context(), `SELECT relname::text FROM pg_class WHERE relnamespace = 'pawl'::regnamespace
		AND relkind IN ('r', 'p', 'S', 'v', 'm') AND NOT relispartition
		AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = pg_class.oid
			AND d.deptype = 'i' AND relkind = 'S') -- sequences of identities
		ORDER BY relname COLLATE "C"`)
	require.NoError(t, err)
	there, err := pgx.CollectRows(rows, pgx.RowTo[string])
	assert.Truef(t, err == nil && slices.Equal(named, there), "rights on\n%v\nand there are\n%v: %v", named, there, err)
}

// The error for a role that may not migrate names the one that may.
func TestMigrate_NotAllowed(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectTo(t, pgtest.EmptyPool(t))
	_, as := pgtest.Role(t, pool)
	assert.ErrorContains(t, errOf(Migrate(t.Context(), connected(t, as), Default)), `as the owner of the tables`)
	role, as := pgtest.Role(t, pool)
	assert.ErrorIs(t, errOf(Grant(t.Context(), pool, Default, role)), ErrBehind, "grants without tables")
	require.NoError(t, errOf(Migrate(t.Context(), pool, Default)))
	assert.ErrorContains(t, errOf(Grant(t.Context(), pool, Default, "nobody_is_called_so")), "does not exist", "a role that does not exist")
	require.NoError(t, errOf(Grant(t.Context(), pool, Default, role)))
	require.NoError(t, errOf(pool.Exec(t.Context(), "DELETE FROM pawl.migration WHERE number = $1", len(Migrations))))
	assert.ErrorContains(t, errOf(Migrate(t.Context(), connected(t, as), Default)), `run "migrate up"`)
}
