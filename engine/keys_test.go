package engine_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// inFlightRows inserts n commands in flight with the columns given, of tenant t.
func inFlightRows(t testing.TB, pool *pgxpool.Pool, n int, tenant, columns, values string) {
	t.Helper()
	exec(t, pool, fmt.Sprintf(`INSERT INTO pawl.command (tenant, scope, key, fingerprint, workflow, transition, instance, actor, created_at,
	failures, revision, request, updated_at, %s)
SELECT '%s', 'loan:pay', gen_random_uuid(), decode(repeat('00', 32), 'hex'), 'loan', 'pay', gen_random_uuid(), 'ann',
	now() - interval '1 hour',
	0, 0, '{}', now(), %s FROM generate_series(1, %d)`, columns, tenant, values, n))
}

// finished inserts n finished commands.
func finished(t testing.TB, pool *pgxpool.Pool, n int, status, expires string) {
	t.Helper()
	body := "'{}'"
	if status == "expired" {
		body = "NULL"
	}
	exec(t, pool, fmt.Sprintf(`INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, code,
		body,
	created_at, finished_at, expires_at)
SELECT 'a', 'loan:pay', gen_random_uuid(), decode(repeat('00', 32), 'hex'), '%s', 'loan', 'pay', gen_random_uuid(), 'ann',
	200 + length(%s) - 2, %s,
	now(), now(), %s FROM generate_series(1, %d)`, status, body, body, expires, n))
}

// population puts commands of every kind into the table.
func population(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	waits, works := "status, phase, attempt, run_at", "status, phase, attempt, claimed_by, claimed_at, locked_until"
	inFlightRows(t, pool, 3, "a", waits, `'pending', 'scheduled', 0, now() + interval '1 day'`)
	inFlightRows(t, pool, 2, "a", waits, `'pending', 'working', 0, now() - interval '10 seconds'`)
	inFlightRows(t, pool, 1, "a", waits, `'failed_retryable', 'working', 7, now() + interval '1 hour'`)
	inFlightRows(t, pool, 4, "a", works, `'processing', 'working', 1, 'n', now(), now() + interval '1 minute'`)
	inFlightRows(t, pool, 2, "a", works, `'processing', 'undoing', 5, 'n', now(), now() - interval '1 minute'`)
	inFlightRows(t, pool, 1, "a", strings.Replace(works, "locked", "held", 1),
		`'processing', 'sql', 1, 'sql ann', now(), now() - interval '2 minutes'`)
	inFlightRows(t, pool, 1, "a", "status, phase, attempt, stuck", `'failed_retryable', 'working', 3, 'ask_person'`)
	inFlightRows(t, pool, 2, "a", "status, phase, attempt, given_up_at", `'failed_retryable', 'sql', 1, now() + interval '1 day'`)
	inFlightRows(t, pool, 5, "b", waits, `'pending', 'working', 0, now() - interval '1 hour'`)
	finished(t, pool, 6, "succeeded", "now() + interval '1 day'")
	finished(t, pool, 2, "failed_final", "now() - interval '1 minute'")
	finished(t, pool, 3, "expired", "now() - interval '1 hour'")
	finished(t, pool, 1, "expired", "NULL")
	exec(t, pool, `INSERT INTO pawl.inbox_dead (tenant, consumer, message, hash, type, size, body, status, code, failure, deliveries,
		created_at, updated_at, changed_by)
SELECT tenant, 'bank', n, decode(repeat('00', 32), 'hex'), '', 0, '', status, 'invalid_payload', 'no', 1, now() - interval '1 hour', now(),
	'ann'
FROM (VALUES ('a', 'waiting', 2), ('a', 'discarded', 3), ('b', 'waiting', 1), ('c', 'retried', 1)) AS v(tenant, status, many),
	generate_series(1, many) AS n
ON CONFLICT DO NOTHING`)
}

func TestKeysSayHowCommandsStand(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}})
	require.NoError(t, err)
	defer e.Stop(t.Context())
	empty, err := e.Admin().Keys(t.Context(), "")
	assert.Truef(t, err == nil && len(empty.Statuses) == len(transitions.Statuses) && empty.OldestInFlight.IsZero(),
		"of an empty database: %+v, %v", empty, err)
	population(t, pool)
	k, err := e.Admin().Keys(t.Context(), "a")
	require.NoError(t, err)
	var statuses []string
	for i, s := range k.Statuses {
		assert.Truef(t, s.Status == transitions.Statuses[i] && !s.Estimate, "%+v", s)
		statuses = append(statuses, fmt.Sprint(s.Count))
	}
	assert.Equal(t, "5 7 4 6 2 4", strings.Join(statuses, " "), "by status")
	counts := []int64{k.Scheduled, k.Due, k.Stale, k.Lapsed, k.Stuck, k.Attempts, int64(k.MostTried), k.Expired, k.Forgotten}
	want := []int64{3, 2, 2, 1, 1, 3, 7, 2, 3}
	assert.Truef(t, slices.Equal(counts, want),
		"scheduled, due, stale, lapsed, stuck, many attempts, most tried, expired, forgotten: %v, want %v", counts, want)
	for name, age := range map[string][2]time.Duration{
		"in flight": {k.At.Sub(k.OldestInFlight), time.Hour}, "due": {k.At.Sub(k.OldestDue), 10 * time.Second},
		"stale": {k.At.Sub(k.OldestStale), time.Minute}, "lapsed": {k.At.Sub(k.OldestLapsed), 2 * time.Minute},
		"expired": {k.At.Sub(k.OldestExpired), time.Hour},
	} {
		assert.Truef(t, age[0] >= age[1] && age[0] <= age[1]+time.Minute, "the oldest %s is of %s ago, want %s", name, age[0], age[1])
	}
	assert.Truef(t, k.DeadMessages == 2 && k.At.Sub(k.OldestDeadMessage) >= time.Hour,
		"dead messages: %d, since %s", k.DeadMessages, k.OldestDeadMessage)
	all, err := e.Admin().Keys(t.Context(), "")
	assert.Truef(t, err == nil && all.Due == 7 && all.DeadMessages == 3 && !all.AtLeast, "of everybody: %+v, %v", all, err)
	wantCode(t, errOf(e.Admin().Keys(t.Context(), "no\x00tenant")), workflow.InvalidRequest)
}

// A scrape must not be dearer because there is much: timers for months ahead, a
// backlog, what SQL callers have left.
func TestKeysReadNoMoreOfAKindThanTheyCount(t *testing.T) {
	t.Parallel()
	pool := database(t)
	const many, most = 2000, 100
	waits, works := "status, phase, attempt, run_at", "status, phase, attempt, claimed_by, claimed_at, locked_until"
	inFlightRows(t, pool, many, "a", waits, `'pending', 'scheduled', 0, now() + generate_series * interval '1 hour'`)
	inFlightRows(t, pool, many, "a", waits, `'pending', 'working', 0, now() - interval '1 minute'`)
	inFlightRows(t, pool, many, "a", works, `'processing', 'working', 1, 'n', now(), now() - interval '1 minute'`)
	inFlightRows(t, pool, many, "a", strings.Replace(works, "locked", "held", 1),
		`'processing', 'sql', 1, 'sql ann', now(), now() - interval '1 minute'`)
	inFlightRows(t, pool, many, "a", "status, phase, attempt, stuck", `'failed_retryable', 'working', 3, 'ask_person'`)
	inFlightRows(t, pool, many, "a", "status, phase, attempt, given_up_at", `'failed_retryable', 'sql', 1, now() + interval '1 day'`)
	inFlightRows(t, pool, many, "a", waits+", paused", `'pending', 'scheduled', 0, now() - interval '1 hour', 'workflow:loan'`)
	finished(t, pool, many, "expired", "now() - interval '1 hour'")
	for _, when := range []string{"as they grew", "analyzed"} {
		got, bound := pgtest.RowsRead(t, pool, store.KeysSQL, "", most, 5), 8.0*(most+1)
		assert.Truef(t, got <= bound, "%s: keys read %v rows, more than %v", when, got, bound)
		exec(t, pool, "ANALYZE")
	}
	e, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}})
	require.NoError(t, err)
	defer e.Stop(t.Context())
	inFlightRows(t, pool, inspect.MaxCounted, "a", waits, `'pending', 'scheduled', 0, now() + interval '1 day'`)
	k, err := e.Admin().Keys(t.Context(), "")
	assert.Truef(t, err == nil && k.AtLeast && k.Due == 2*many && k.Scheduled == inspect.MaxCounted+1, "%+v, %v", k, err)
}

// recorded are the attempts by scope that the database has.
func recorded(t *testing.T, e *engine.Engine, tenant string) string {
	t.Helper()
	k, err := e.Admin().Keys(t.Context(), tenant)
	require.NoError(t, err)
	assert.Falsef(t, len(k.Recorded) > 0 && (k.RecordedSince.IsZero() || k.RecordedSince.After(k.At)), "recorded since %v", k.RecordedSince)
	return fmt.Sprintf("%+v", k.Recorded)
}

func TestSuppressionSurvivesRestarts(t *testing.T) {
	t.Parallel()
	pool := database(t)
	pack := func(e *engine.Engine, tenant, scope string, times int) {
		for range times {
			submit(t, e, transitions.Command{Tenant: tenant, Workflow: "crate", Transition: "pack", Key: "k",
				Options: transitions.Options{Scope: scope}})
		}
	}
	one, other := newEngine(t, pool, running(crates(1))), newEngine(t, pool, running(crates(1)))
	pack(one, "a", "", 3)
	pack(other, "a", "", 2)
	pack(other, "b", "dock 4", 2)
	one.Stop(context.Background())
	other.Stop(context.Background())
	later := newEngine(t, pool, running(crates(1)))
	assert.Empty(t, later.Admin().Scopes(""), "it has answered nothing, and counts")
	crate := inspect.ScopeCount{Tenant: "a", Scope: "crate:pack", New: 1, Replayed: 4}
	dock := inspect.ScopeCount{Tenant: "b", Scope: "dock 4", Named: true, New: 1, Replayed: 1}
	got, want := recorded(t, later, ""), fmt.Sprintf("%+v", []inspect.ScopeCount{crate, dock})
	assert.Truef(t, got == want, "got  %s\nwant %s", got, want)
	if got, want := recorded(t, later, "b"), fmt.Sprintf("%+v", []inspect.ScopeCount{dock}); got != want {
		t.Errorf("of a tenant: got  %s\nwant %s", got, want)
	}
	pack(later, "a", "", 2)
	later.Stop(context.Background())
	crate.Replayed += 2
	if got, want := recorded(t, later, "a"), fmt.Sprintf("%+v", []inspect.ScopeCount{crate}); got != want {
		t.Errorf("of two days of work: got  %s\nwant %s", got, want)
	}
	exec(t, pool, "UPDATE pawl.scope_day SET day = day - 31")
	assert.Equal(t, "[]", recorded(t, later, ""), "a month ago")
}

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
