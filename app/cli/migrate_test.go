package cli

import (
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
)

// What is pending is told, planned and done; to look changes nothing.
func TestMigrateTellsPlansAndDoes(t *testing.T) {
	pool := pgtest.EmptyPool(t)
	url := pool.Config().ConnString()
	migrate := func(action string, want int) (stdout string) {
		t.Helper()
		code, stdout, stderr := run(t.Context(), append(strings.Fields("migrate "+action), "--database", url, "--schema", "shop")...)
		assert.Truef(t, code == want && (want != 0 || stderr == ""), "migrate %s: exit %d, %s", action, code, stderr)
		return stdout
	}
	first := schema.Migrations[0].Name
	if got := migrate("status", 3); !strings.HasPrefix(got, "schema shop is at version 0, and this program needs ") ||
		!strings.Contains(got, "     1  "+first) || !strings.Contains(got, "pending\n") {
		t.Error(got)
	}
	plan := migrate("plan", 0)
	assert.Contains(t, plan, `CREATE TABLE "shop".instance (`)
	got := migrate("plan -o json", 0)
	assert.Truef(t, strings.Contains(got, `"version": 0`) && strings.Contains(got, `CREATE TABLE \"shop\".instance`), "%.500s", got)
	migrate("status", 3) // still
	_, err := pool.Exec(t.Context(), plan, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	got = migrate("up", 0)
	assert.True(t, strings.HasSuffix(got, ", 0 applied now\n"), got)
	assert.NotContains(t, migrate("status", 0), "pending")
	got = migrate("plan", 0)
	assert.True(t, strings.HasPrefix(got, "-- nothing is pending: schema shop is at version "), got)
	var all standing
	if err := json.Unmarshal([]byte(migrate("status --output json", 0)), &all); err != nil || all.Version != len(schema.Migrations) ||
		all.Program != all.Version || len(all.Migrations) != all.Version || all.Migrations[0].AppliedAt == nil {
		t.Errorf("%v: %+v", err, all)
	}
	_, err = pool.Exec(t.Context(), "INSERT INTO shop.migration (number, name) VALUES (1000, 'later')")
	require.NoError(t, err)
	cannot := func(why string, codes map[string]int) {
		t.Helper()
		for action, want := range codes {
			code, _, stderr := run(t.Context(), "migrate", action, "--database", url, "--schema", "shop")
			assert.Truef(t, code == want && strings.Contains(stderr, why), "%s: exit %d, %s", action, code, stderr)
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

// Nodes that start at once each bring the tables up to date, and each step is done by one of them.
func TestTwoMigrateUpAtOnce(t *testing.T) {
	url := pgtest.EmptyURL(t)
	var nodes sync.WaitGroup
	var applied atomic.Int64
	for range 2 {
		nodes.Go(func() {
			code, stdout, stderr := run(t.Context(), "migrate", "up", "--output", "json", "--database", url)
			var done struct{ Version, Applied int }
			err := json.Unmarshal([]byte(stdout), &done)
			assert.Truef(t, code == 0 && err == nil && done.Version == len(schema.Migrations), "exit %d, %s%s", code, stdout, stderr)
			applied.Add(int64(done.Applied))
		})
	}
	nodes.Wait()
	assert.Equalf(t, int64(len(schema.Migrations)), applied.Load(), "steps were done of %d", len(schema.Migrations))
}

// Alone it goes on to do what it did before it had others.
func TestMigrateAloneIsMigrateUp(t *testing.T) {
	url := pgtest.EmptyURL(t)
	code, stdout, stderr := run(t.Context(), "migrate", "--output", "json", "--database", url)
	var done struct{ Version, Applied int }
	err := json.Unmarshal([]byte(stdout), &done)
	assert.Truef(t, code == 0 && err == nil && done.Applied == len(schema.Migrations) && done.Version == done.Applied,
		"exit %d, %s%s", code, stdout, stderr)
	if code, _, stderr := run(t.Context(), "migrate", "pu", "--database", url); code != 2 ||
		!strings.Contains(stderr, `there is no command "pu"`) {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if code, _, stderr := run(t.Context(), "migrate", "status", "-o", "yaml"); code != 2 ||
		!strings.Contains(stderr, "neither table nor json") {
		t.Errorf("exit %d, %s", code, stderr)
	}
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
	assert.Truef(t, got == planned && strings.Contains(got, `GRANT SELECT, UPDATE ON TABLE "pawl"."leadership" TO "`+role+`";`),
		"planned %s, applied %s", planned, got)
	migrated(0)
	stdout, _ := grants(0, role, "-o", "json")
	var g struct {
		Role       string
		Applied    bool
		Statements []string
	}
	err = json.Unmarshal([]byte(stdout), &g)
	assert.Truef(t, err == nil && g.Role == role && g.Applied && len(g.Statements) >= 5, "%v: %+v", err, g)
	_, err = pool.Exec(t.Context(), planned, pgx.QueryExecModeSimpleProtocol)
	assert.NoError(t, err, "a file of them")
}
