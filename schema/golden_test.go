package schema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/testkit/docs"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// The schema is an interface: SQL callers, backups and older nodes depend on it.
func TestSchema_Golden(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if version := query[int](t, pool, "SELECT current_setting('server_version_num')::int / 10000"); version != 15 {
		t.Skipf("PostgreSQL %d may print definitions differently from version 15", version)
	}
	docs.File(t, "testdata/schema.txt", query[string](t, pool, `
SELECT string_agg(line, E'\n' ORDER BY line COLLATE "C") || E'\n' FROM (
	SELECT format('table %s %s %s%s%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
		CASE WHEN a.attnotnull THEN ' not null' END, ' default ' || pg_get_expr(d.adbin, d.adrelid)) AS line
	FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid LEFT JOIN pg_attrdef AS d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
	WHERE c.relnamespace = 'pawl'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
	UNION ALL
	SELECT format('constraint %s %s %s', c.relname, n.conname, regexp_replace(pg_get_constraintdef(n.oid), '\s+', ' ', 'g'))
	FROM pg_constraint AS n JOIN pg_class AS c ON c.oid = n.conrelid
	WHERE c.relnamespace = 'pawl'::regnamespace AND NOT c.relispartition AND n.contype <> 'n'
	UNION ALL
	SELECT format('function %s(%s) returns %s', p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid))
	FROM pg_proc AS p WHERE p.pronamespace = 'pawl'::regnamespace
) AS lines`))
}

// The list is needed to detect missing indexes where the migrations cannot be executed.
func TestIndexes_Golden(t *testing.T) {
	t.Parallel()
	got := query[string](t, pgtest.Pool(t), `
SELECT string_agg(`+IndexDefinition("i.indexrelid")+`, E'\n' ORDER BY t.relname COLLATE "C", c.relname COLLATE "C") || E'\n'
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_class AS t ON t.oid = i.indrelid
WHERE t.relnamespace = 'pawl'::regnamespace AND NOT t.relispartition`)
	docs.File(t, "indexes.txt", got)
	assert.Falsef(t, !*docs.Update && len(Indexes) != strings.Count(got, "\n"), "%d indexes were read of %s", len(Indexes), got)
}
