package engine_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

func TestCountsAreByWorkflowDefinitionAndState(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := lists(t, pool)
	seedTimes(t, pool, 600)
	type kind struct {
		workflow   string
		definition int
		state      workflow.State
		open       bool
	}
	yes := true
	for name, f := range map[string]inspect.CountFilter{
		"everything of everybody": {},
		"of a tenant":             {Tenant: "acme"},
		"of nobody":               {Tenant: "nobody"},
		"of a workflow":           {Tenant: "default", Workflow: "gift"},
		"open":                    {Tenant: "default", Open: &yes},
		"a definition in states":  {Definition: 2, States: []workflow.State{"open", "settled"}},
		"an attribute":            {Tenant: "default", Attributes: map[string]string{"region": "r-1"}},
		"an attribute in a state": {Workflow: "loan", States: []workflow.State{"open"}, Attributes: map[string]string{"customer": "c-4"}},
		"a value of no instance":  {Attributes: map[string]string{"customer": "c-1000"}},
	} {
		want, total := map[kind]int64{}, int64(0)
		for _, tenant := range []string{"default", "acme"} {
			for _, i := range everything(t, pool, tenant) {
				list := inspect.Filter{Workflow: f.Workflow, Definition: f.Definition, States: f.States, Open: f.Open, Attributes: f.Attributes}
				if selects(&list, &i) && (f.Tenant == "" || f.Tenant == tenant) {
					want[kind{i.Workflow, i.Definition, i.State, i.Open}]++
					total++
				}
			}
		}
		c, err := e.Read().Counts(t.Context(), f)
		require.NoError(t, err)
		got := map[kind]int64{}
		for _, k := range c.Counts {
			got[kind{k.Workflow, k.Definition, k.State, k.Open}] = k.Count
			assert.Truef(t, k.Exact, "%s: %+v is not exact", name, k)
		}
		assert.Truef(t, reflect.DeepEqual(got, want) && c.Total == total && c.Exact && c.Tenant == f.Tenant &&
			time.Since(c.At).Abs() <= time.Hour, "%s: got %+v, want %v", name, c, want)
	}
}

// What is more than is counted is said to be an estimate, never less than what was
// counted, and of the right size once the table was analyzed.
func TestCountsOfManyAreEstimatesAndSaySo(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := lists(t, pool)
	exec(t, pool, "ALTER TABLE pawl.instance SET (autovacuum_enabled = false)")
	exec(t, pool, `INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
		SELECT 'default', gen_random_uuid(), 'loan', 1, CASE WHEN i % 8 = 0 THEN 'open' ELSE 'settled' END, 1, '{}', i % 8 = 0, sha256('x'),
			now(), now()
		FROM generate_series(0, 23999) i`)
	count := func(state workflow.State) (k inspect.InstanceCount, all inspect.Counts) {
		t.Helper()
		all, err := e.Read().Counts(t.Context(), inspect.CountFilter{Tenant: "default"})
		require.NoError(t, err)
		for _, k := range all.Counts {
			if k.State == state {
				return k, all
			}
		}
		t.Fatalf("none in %s: %+v", state, all)
		return k, all
	}
	k, all := count("settled")
	assert.Truef(t, !k.Exact && !all.Exact && k.Count > 10_000, "without statistics: %+v", k)
	exec(t, pool, "ANALYZE pawl.instance")
	k, all = count("settled")
	assert.Truef(t, !k.Exact && !all.Exact && k.Count >= 19_000 && k.Count <= 23_000, "of 21,000: %+v", k)
	k, _ = count("open")
	assert.Truef(t, k.Exact && k.Count == 3000, "of 3,000: %+v", k)
}

// A filter that selects few or none of very many kinds looks at the first of them, and
// says that its answer is an estimate.
func TestCounts_Bounded(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := lists(t, pool)
	exec(t, pool, `INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
		SELECT 't' || lpad(i::text, 6, '0'), gen_random_uuid(), CASE WHEN i < 10100 THEN 'unknown here' ELSE 'loan' END, 1, 'open', 1, '{}', true,
			sha256('x'), now(), now() FROM generate_series(0, 10199) i`)
	exec(t, pool, "ANALYZE pawl.instance")
	no := false
	for name, tt := range map[string]struct {
		filter    inspect.CountFilter
		low, high int64
	}{
		"a state that none is in":     {inspect.CountFilter{States: []workflow.State{"lost"}}, 0, 0},
		"what none is":                {inspect.CountFilter{Open: &no}, 0, 0},
		"behind the first, known":     {inspect.CountFilter{Workflow: "loan"}, 50, 150},
		"among the first, unknown":    {inspect.CountFilter{States: []workflow.State{"open"}}, 10_100, 10_300},
		"a definition that none has":  {inspect.CountFilter{Definition: 7}, 0, 0},
		"everything, without filters": {inspect.CountFilter{}, 10_100, 10_300},
	} {
		c, err := e.Read().Counts(t.Context(), tt.filter)
		assert.Truef(t, err == nil && !c.Exact && c.Total >= tt.low && c.Total <= tt.high, "%s: %+v, %v", name, c, err)
	}
	c, err := e.Read().Counts(t.Context(), inspect.CountFilter{Tenant: "t010150", States: []workflow.State{"open"}})
	assert.Truef(t, err == nil && c.Exact && c.Total == 1, "of one of them: %+v, %v", c, err)
}
