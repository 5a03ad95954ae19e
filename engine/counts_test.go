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
		if !reflect.DeepEqual(got, want) || c.Total != total || !c.Exact || c.Tenant != f.Tenant || time.Since(c.At).Abs() > time.Hour {
			t.Errorf("%s: got %+v, want %v", name, c, want)
		}
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

// Where tenants are so many that to look at each is too much, the planner's
// statistics of all of them are asked.
func TestCountsOfVeryManyTenantsAreEstimates(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := lists(t, pool)
	exec(t, pool, `INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
		SELECT 't' || i % 1500, gen_random_uuid(), 'unknown here', 1, 'open', 1, '{}', true, sha256('x'), now(), now()
			FROM generate_series(0, 5999) i`)
	exec(t, pool, "ANALYZE pawl.instance")
	c, err := e.Read().Counts(t.Context(), inspect.CountFilter{})
	if err != nil || c.Exact || len(c.Counts) != 1 || c.Counts[0].State != "open" || c.Counts[0].Exact || c.Total < 5000 || c.Total > 7000 {
		t.Errorf("of everybody's 6,000: %+v, %v", c, err)
	}
	c, err = e.Read().Counts(t.Context(), inspect.CountFilter{States: []workflow.State{"settled"}})
	assert.Truef(t, err == nil && c.Exact && c.Total == 0, "of a state that none is in: %+v, %v", c, err)
	c, err = e.Read().Counts(t.Context(), inspect.CountFilter{Tenant: "t7"})
	assert.Truef(t, err == nil && c.Exact && c.Total == 4, "of one of them: %+v, %v", c, err)
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

// A tenant with more kinds than the global count includes gets its own count. A list of that many kinds is refused in the order of updates,
// but not in that of ids.
func TestATenantWithVeryManyKindsIsToldHisOwn(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := lists(t, pool)
	exec(t, pool, `INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
		SELECT CASE WHEN i < 1100 THEN 'many' ELSE 'other' END, gen_random_uuid(), 'loan', 1 + i % 1100, 'open', 1, '{}', true, sha256('x'),
			now(), now()
		FROM generate_series(0, 4399) i`)
	exec(t, pool, "ANALYZE pawl.instance")
	c, err := e.Read().Counts(t.Context(), inspect.CountFilter{Tenant: "many"})
	assert.Truef(t, err == nil && c.Exact && c.Total == 1100 && len(c.Counts) == 1100,
		"1,100 of 1,100 kinds: %d of %d, exact %v, %v", c.Total, len(c.Counts), c.Exact, err)
	_, err = e.Read().Instances(t.Context(), inspect.Filter{Tenant: "many", Order: inspect.ByUpdate})
	wantCode(t, err, workflow.InvalidRequest)
	page, err := e.Read().Instances(t.Context(), inspect.Filter{Tenant: "many", States: []workflow.State{"open"}, Limit: 10})
	assert.Truef(t, err == nil && len(page.Instances) == 10 && page.More,
		"in the order of ids: %d, more %v, %v", len(page.Instances), page.More, err)
	page, err = e.Read().Instances(t.Context(), inspect.Filter{Tenant: "many", Order: inspect.ByUpdate, Definition: 7, Workflow: "loan"})
	assert.Truef(t, err == nil && len(page.Instances) == 1, "of one kind: %d, %v", len(page.Instances), err)
}

func TestCountsRefuseWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t))
	for want, f := range map[workflow.Code]inspect.CountFilter{
		workflow.InvalidRequest:   {Definition: -1},
		workflow.WorkflowNotFound: {Workflow: "nothing"},
	} {
		_, err := e.Read().Counts(t.Context(), f)
		wantCode(t, err, want)
	}
	_, err := e.Read().Counts(t.Context(), inspect.CountFilter{Tenant: "a\x00b"})
	wantCode(t, err, workflow.InvalidRequest)
}

func TestCountsByAttribute_Many(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := lists(t, pool)
	const n = 24_000
	exec(t, pool, "ALTER TABLE pawl.instance SET (autovacuum_enabled = false)")
	seedTimes(t, pool, n)
	exec(t, pool, "VACUUM ANALYZE pawl.instance")
	c, err := e.Read().Counts(t.Context(), inspect.CountFilter{Attributes: map[string]string{"region": "r-1"}})
	require.NoError(t, err)
	if want := int64(n / 2); c.Exact || c.Total < want/2 || c.Total > 2*want {
		t.Errorf("%d instances, exact %t, want an estimate of %d", c.Total, c.Exact, want)
	}
	_, err = e.Read().Counts(t.Context(), inspect.CountFilter{Workflow: "loan", Attributes: map[string]string{"size": "1"}})
	assert.Equalf(t, workflow.InvalidRequest, workflow.CodeOf(err), "undeclared attribute: %v", err)
}
