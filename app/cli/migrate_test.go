package cli

import (
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

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
		if code != want || want == 0 && stderr != "" {
			t.Errorf("migrate %s: exit %d, %s", action, code, stderr)
		}
		return stdout
	}
	first := schema.Migrations[0].Name
	if got := migrate("status", 3); !strings.HasPrefix(got, "schema shop is at version 0, and this program needs ") ||
		!strings.Contains(got, "     1  "+first) || !strings.Contains(got, "pending\n") {
		t.Error(got)
	}
	plan := migrate("plan", 0)
	if !strings.Contains(plan, `CREATE TABLE "shop".instance (`) {
		t.Errorf("%.500s", plan)
	}
	if got := migrate("plan -o json", 0); !strings.Contains(got, `"version": 0`) || !strings.Contains(got, `CREATE TABLE \"shop\".instance`) {
		t.Errorf("%.500s", got)
	}
	migrate("status", 3) // still
	if _, err := pool.Exec(t.Context(), plan, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	if got := migrate("up", 0); !strings.HasSuffix(got, ", 0 applied now\n") {
		t.Error(got)
	}
	if got := migrate("status", 0); strings.Contains(got, "pending") {
		t.Error(got)
	}
	if got := migrate("plan", 0); !strings.HasPrefix(got, "-- nothing is pending: schema shop is at version ") {
		t.Error(got)
	}
	var all standing
	if err := json.Unmarshal([]byte(migrate("status --output json", 0)), &all); err != nil || all.Version != len(schema.Migrations) ||
		all.Program != all.Version || len(all.Migrations) != all.Version || all.Migrations[0].AppliedAt == nil {
		t.Errorf("%v: %+v", err, all)
	}
	if _, err := pool.Exec(t.Context(), "INSERT INTO shop.migration (number, name) VALUES (1000, 'later')"); err != nil {
		t.Fatal(err)
	}
	cannot := func(why string, codes map[string]int) {
		t.Helper()
		for action, want := range codes {
			if code, _, stderr := run(t.Context(), "migrate", action, "--database", url, "--schema", "shop"); code != want ||
				!strings.Contains(stderr, why) {
				t.Errorf("%s: exit %d, %s", action, code, stderr)
			}
		}
	}
	codes := map[string]int{"status": 4, "plan": 4, "up": 1}
	cannot("newer than this program (schema version 1000, program", codes)
	if _, err := pool.Exec(t.Context(), "DELETE FROM shop.migration WHERE number = 1000; UPDATE shop.migration SET name = 'theirs' WHERE "+
		"number = 2"); err != nil {
		t.Fatal(err)
	}
	cannot(`migration 2 is "theirs" there`, codes)
	if _, err := pool.Exec(t.Context(), "ALTER TABLE shop.migration DROP COLUMN needs"); err != nil {
		t.Fatal(err)
	}
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
			if err := json.Unmarshal([]byte(stdout), &done); code != 0 || err != nil || done.Version != len(schema.Migrations) {
				t.Errorf("exit %d, %s%s", code, stdout, stderr)
			}
			applied.Add(int64(done.Applied))
		})
	}
	nodes.Wait()
	if n := applied.Load(); n != int64(len(schema.Migrations)) {
		t.Errorf("%d steps were done of %d", n, len(schema.Migrations))
	}
}

// Alone it goes on to do what it did before it had others.
func TestMigrateAloneIsMigrateUp(t *testing.T) {
	url := pgtest.EmptyURL(t)
	code, stdout, stderr := run(t.Context(), "migrate", "--output", "json", "--database", url)
	var done struct{ Version, Applied int }
	if err := json.Unmarshal([]byte(stdout), &done); code != 0 || err != nil || done.Applied != len(schema.Migrations) ||
		done.Version != done.Applied {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
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
		if code != want {
			t.Errorf("%s: exit %d, %s", args, code, stderr)
		}
		return stdout, stderr
	}
	if _, stderr := grants(1, role); !strings.Contains(stderr, "has no tables of Pawl") {
		t.Errorf("without tables: %s", stderr)
	}
	if _, err := schema.Migrate(t.Context(), pool, schema.Default); err != nil {
		t.Fatal(err)
	}
	if _, stderr := grants(2); !strings.Contains(stderr, "ROLE is missing") {
		t.Error(stderr)
	}
	if _, stderr := grants(1, "nobody_is_called_so"); !strings.Contains(stderr, "does not exist") {
		t.Error(stderr)
	}
	migrated := func(want int) {
		t.Helper()
		if code, _, stderr := run(t.Context(), "migrate", "status", "--database", as); code != want {
			t.Errorf("as the role: exit %d, %s", code, stderr)
		}
	}
	planned, _ := grants(0, role, "--dry-run")
	migrated(1)
	if got, _ := grants(0, role); got != planned ||
		!strings.Contains(got, `GRANT SELECT, UPDATE ON TABLE "pawl"."leadership" TO "`+role+`";`) {
		t.Errorf("planned %s, applied %s", planned, got)
	}
	migrated(0)
	stdout, _ := grants(0, role, "-o", "json")
	var g struct {
		Role       string
		Applied    bool
		Statements []string
	}
	if err := json.Unmarshal([]byte(stdout), &g); err != nil || g.Role != role || !g.Applied || len(g.Statements) < 5 {
		t.Errorf("%v: %+v", err, g)
	}
	if _, err := pool.Exec(t.Context(), planned, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Errorf("a file of them: %v", err)
	}
}
