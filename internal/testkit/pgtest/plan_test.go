package pgtest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThePlanOfAStatementIsListedStepByStep(t *testing.T) {
	t.Parallel()
	pool := Pool(t)
	_, err := pool.Exec(t.Context(), `CREATE TABLE spot (id int PRIMARY KEY); INSERT INTO spot VALUES (1), (2)`)
	require.NoError(t, err)
	const sql = `SELECT FROM spot WHERE id = $1 LIMIT 1`
	const settings = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
		set_config('plan_cache_mode', 'force_generic_plan', true)`
	steps := ExplainPrepared(t, pool, settings, sql, 1)
	want := Step{Type: "Index Only Scan", Relation: "spot", Index: "spot_pkey", Cond: "(id = $1)", Goes: "Forward"}
	assert.Truef(t, len(steps) == 2 && steps[0].Type == "Limit" && steps[1] == want, "got %+v, want %+v", steps, want)
	steps = Explain(t, pool, "ANALYZE, ", `SELECT FROM spot ORDER BY id + 0`)
	assert.Truef(t, slices.ContainsFunc(steps, func(s Step) bool { return s.Type == "Seq Scan" && s.Relation == "spot" && s.Rows == 2 }),
		"got %+v", steps)
	assert.Equal(t, 1, Pages(t, pool, "SELECT FROM spot"), "pages were read, and the table has one")
}
