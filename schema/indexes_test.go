package schema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/testkit/docs"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

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

func TestOutboxWeeksHavePrimaryKey(t *testing.T) {
	t.Parallel()
	without := query[int](t, pgtest.Pool(t), `SELECT count(*) FROM pg_inherits AS h JOIN pg_index AS i ON i.indrelid = h.inhrelid
		AND i.indisprimary
		WHERE h.inhparent = 'pawl.outbox'::regclass AND NOT pg_get_indexdef(i.indexrelid) LIKE '%' || $1`, WeekKey)
	assert.Equal(t, 0, without, "weeks have another primary key")
}
