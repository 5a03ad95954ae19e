package arch_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// owner is the package whose SQL names a table. Other packages call its functions or use its pieces of SQL. docs/internals/tables.md shows
// the same.
var owner = map[string]string{
	"instance": "internal/kernel/store", "command": "internal/kernel/store", "paused": "internal/kernel/store", "horizon": "internal/kernel/store",
	"begins": "internal/kernel/store", "node": "internal/kernel/store", "scope_day": "internal/kernel/store",
	"audit": "internal/kernel/audit", "outbox": "internal/kernel/outbox", "log": "internal/kernel/outbox",
	"outbox_sink": "outbox/relay", "outbox_cursor": "outbox/relay", "outbox_dead": "outbox/relay",
	"inbox_dead": "inbox", "inbox_kept": "inbox", "leadership": "engine/internal/retention", "definition": "engine",
	"api_key":            "auth/apikey",
	"schedule":           "engine/internal/schedules",
	"instance_migration": "engine/internal/migrate",
	"ticket_key":         "auth/ticket/keyset",
	"command_history":    "", // only the SQL contract writes it
}

// yardsticks may name all tables: they are compared with the owners.
var yardsticks = []string{
	"bench",                   // hand-written transactions to compare with, rows that are loaded, and what is left after a run
	"examples/fines/replay",   // reads the tables as an independent auditor would
	"internal/testkit/tables", // finds rows that lack what belongs to them, for tests
}

func TestEachTableIsNamedByOnePackagesSQL(t *testing.T) {
	tables, err := Tables(os.DirFS(root), "schema/migrations")
	require.NoError(t, err)
	if slices.Sort(tables); !slices.Equal(tables, slices.Sorted(maps.Keys(owner))) {
		t.Errorf("the migrations make %v; who owns each of them?", tables)
	}
	found, err := Owners(os.DirFS(root), tables)
	require.NoError(t, err)
	for table, packages := range found {
		packages = slices.DeleteFunc(packages, func(p string) bool {
			return slices.ContainsFunc(yardsticks, func(y string) bool { return p == y || strings.HasPrefix(p, y+"/") })
		})
		assert.Equalf(t, owner[table], strings.Join(packages, ", "), "%s is named by, and 's", table)
	}
}

// The check has to be able to fail.
func TestNamesOfTablesAreFound(t *testing.T) {
	fsys := fstest.MapFS{
		"m/1.sql":     {Data: []byte("CREATE TABLE pawl.a (\n);\n-- CREATE TABLE pawl.no (\nCREATE TABLE pawl.b (")},
		"x/x.go":      {Data: []byte("package x\n// pawl.b\nconst s = `SELECT FROM {pawl}.a, {pawl}.ab` + \"{pawl}.f()\"")},
		"x/x_test.go": {Data: []byte("package x\nconst t = `{pawl}.b`")},
		"y/y.go":      {Data: []byte("package y\nvar s = f(\"UPDATE {pawl}.a\")")},
	}
	tables, err := Tables(fsys, "m")
	require.Truef(t, err == nil && slices.Equal(tables, []string{"a", "b"}), "%v, %v", tables, err)
	found, err := Owners(fsys, tables)
	assert.Truef(t, err == nil && slices.Equal(found["a"], []string{"x", "y"}) && len(found["b"]) == 0, "%v, %v", found, err)
}
