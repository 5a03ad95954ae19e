package engine_test

import (
	"fmt"
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
