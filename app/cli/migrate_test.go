package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
)

func TestMigrate_StatusPlanUp(t *testing.T) {
	pool := pgtest.EmptyPool(t)
	url := pool.Config().ConnString()
	migrate := func(action string, want int) (stdout string) {
		t.Helper()
		code, stdout, stderr := run(t.Context(), append(strings.Fields("migrate "+action), "--database", url, "--schema", "shop")...)
		assert.Equal(t, want, code, action, stderr)
		return stdout
	}
	first := schema.Migrations[0].Name
	assert.Regexp(t, "(?s)^schema shop is at version 0, and this program needs .*     1  "+first+".*pending\n", migrate("status", 3))
	plan := migrate("plan", 0)
	assert.Contains(t, plan, `CREATE TABLE "shop".instance (`)
	assert.Contains(t, migrate("plan -o json", 0), `CREATE TABLE \"shop\".instance`)
	migrate("status", 3) // still
	_, err := pool.Exec(t.Context(), plan, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	assert.Contains(t, migrate("up", 0), ", 0 applied now\n")
	assert.NotContains(t, migrate("status", 0), "pending")
	assert.Contains(t, migrate("plan", 0), "-- nothing is pending: schema shop is at version ")
	var all standing
	require.NoError(t, json.Unmarshal([]byte(migrate("status --output json", 0)), &all))
	assert.Equal(t, len(schema.Migrations), all.Version)
	assert.Equal(t, len(schema.Migrations), all.Program)
	require.Len(t, all.Migrations, all.Version)
	assert.NotNil(t, all.Migrations[0].AppliedAt)
	_, err = pool.Exec(t.Context(), "INSERT INTO shop.migration (number, name) VALUES (1000, 'later')")
	require.NoError(t, err)
	cannot := func(why string, codes map[string]int) {
		t.Helper()
		for action, want := range codes {
			code, _, stderr := run(t.Context(), "migrate", action, "--database", url, "--schema", "shop")
			assert.Equal(t, want, code, action)
			assert.Contains(t, stderr, why, action)
		}
	}
	codes := map[string]int{"status": 4, "plan": 4, "up": 1}
	cannot("newer than this program (schema version 1000, program", codes)
	_, err = pool.Exec(t.Context(), "DELETE FROM shop.migration WHERE number = 1000; UPDATE shop.migration SET name = 'theirs' WHERE "+
		"number = 2")
	require.NoError(t, err)
	cannot(`migration 2 is "theirs" there`, codes)
	_, err = pool.Exec(t.Context(), "ALTER TABLE shop.migration DROP COLUMN needs")
	require.NoError(t, err)
	cannot("the table migration in schema shop is another one", codes)
}

func TestMigrateAloneIsMigrateUp(t *testing.T) {
	u := &user{t: t, database: pgtest.EmptyURL(t)}
	type result struct{ Version, Applied int }
	assert.Equal(t, result{len(schema.Migrations), len(schema.Migrations)}, read[result](u, "migrate --output json"))
	u.fails("migrate pu", 2, `there is no command "pu"`)
	u.fails("migrate status -o yaml", 2, "neither table nor json")
}

func TestMigrateGrants_PrintsAndApplies(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectTo(t, pgtest.EmptyPool(t))
	role, as := pgtest.Role(t, pool)
	grants := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := run(t.Context(), append([]string{"migrate", "grants", "--database", pool.Config().ConnString()}, args...)...)
		assert.Equalf(t, want, code, "%s: exit, %s", args, stderr)
		return stdout, stderr
	}
	_, stderr := grants(1, role)
	assert.Contains(t, stderr, "has no tables of Pawl", "without tables")
	_, err := schema.Migrate(t.Context(), pool, schema.Default)
	require.NoError(t, err)
	_, stderr = grants(2)
	assert.Contains(t, stderr, "ROLE is missing")
	_, stderr = grants(1, "nobody_is_called_so")
	assert.Contains(t, stderr, "does not exist")
	migrated := func(want int) {
		t.Helper()
		code, _, stderr := run(t.Context(), "migrate", "status", "--database", as)
		assert.Equalf(t, want, code, "as the role: exit, %s", stderr)
	}
	planned, _ := grants(0, role, "--dry-run")
	migrated(1)
	got, _ := grants(0, role)
	assert.Equal(t, planned, got)
	assert.Contains(t, got, `GRANT SELECT, UPDATE ON TABLE "pawl"."leadership" TO "`+role+`";`)
	migrated(0)
	stdout, _ := grants(0, role, "-o", "json")
	var g struct {
		Role       string
		Applied    bool
		Statements []string
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &g))
	assert.Equal(t, role, g.Role)
	assert.True(t, g.Applied)
	assert.GreaterOrEqual(t, len(g.Statements), 5)
	_, err = pool.Exec(t.Context(), planned, pgx.QueryExecModeSimpleProtocol)
	assert.NoError(t, err, "a file of them")
}
