package store

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

// KeysSQL counts commands in flight and expired ones, each kind by its index up to a limit. Parameters: tenant or "", limit of each kind,
// inspect.ManyAttempts.
const KeysSQL = `
WITH RECURSIVE ` + activities + `,
flight AS MATERIALIZED (
	(SELECT 1 AS kind, tenant, status, phase, attempt, created_at, run_at, waits_since, NULL::timestamptz AS until FROM {pawl}.command
		WHERE ` + later + ` ORDER BY run_at LIMIT $2 + 1)
	UNION ALL
	(SELECT 6, w.tenant, w.status, w.phase, w.attempt, w.created_at, w.run_at, w.waits_since, NULL
		FROM activities AS a CROSS JOIN LATERAL (SELECT * FROM {pawl}.command AS c
			WHERE ` + waits + ` AND c.workflow = a.workflow AND c.transition = a.transition
			ORDER BY c.workflow, c.transition, c.run_at LIMIT $2 + 1) AS w
		ORDER BY w.run_at LIMIT $2 + 1)
	UNION ALL
	(SELECT 7, tenant, status, phase, attempt, created_at, run_at, waits_since, NULL FROM {pawl}.command
		WHERE paused IS NOT NULL ORDER BY paused, tenant, run_at LIMIT $2 + 1)
	UNION ALL
	(SELECT 2, tenant, status, phase, attempt, created_at, NULL, NULL, locked_until FROM {pawl}.command
		WHERE locked_until IS NOT NULL ORDER BY locked_until LIMIT $2 + 1)
	UNION ALL
	(SELECT 3, tenant, status, phase, attempt, created_at, NULL, NULL, held_until FROM {pawl}.command
		WHERE held_until IS NOT NULL ORDER BY held_until LIMIT $2 + 1)
	UNION ALL
	(SELECT 4, tenant, status, phase, attempt, created_at, NULL, NULL, NULL FROM {pawl}.command
		WHERE stuck IS NOT NULL ORDER BY tenant, updated_at LIMIT $2 + 1)
	UNION ALL
	(SELECT 5, tenant, status, phase, attempt, created_at, NULL, NULL, NULL FROM {pawl}.command
		WHERE given_up_at IS NOT NULL ORDER BY given_up_at LIMIT $2 + 1)
), expired AS MATERIALIZED (
	SELECT tenant, status, expires_at FROM {pawl}.command WHERE expires_at <= statement_timestamp() ORDER BY expires_at LIMIT $2
)
SELECT statement_timestamp(), f.*, x.*, EXISTS (SELECT FROM flight GROUP BY kind HAVING count(*) > $2)
FROM (SELECT count(*) FILTER (WHERE status = 'pending'), count(*) FILTER (WHERE status = 'processing'),
		count(*) FILTER (WHERE status = 'failed_retryable'),
		count(*) FILTER (WHERE phase = 'scheduled' AND run_at > statement_timestamp()),
		count(*) FILTER (WHERE run_at <= statement_timestamp()), count(*) FILTER (WHERE kind = 2 AND until <= statement_timestamp()),
		count(*) FILTER (WHERE kind = 3 AND until <= statement_timestamp()), count(*) FILTER (WHERE kind = 4),
		count(*) FILTER (WHERE attempt >= $3), coalesce(max(attempt), 0),
		min(created_at) FILTER (WHERE NOT (phase = 'scheduled' AND run_at > statement_timestamp())),
		min(least(waits_since, run_at)) FILTER (WHERE run_at <= statement_timestamp() OR waits_since IS NOT NULL),
		min(until) FILTER (WHERE kind = 2 AND until <= statement_timestamp()),
		min(until) FILTER (WHERE kind = 3 AND until <= statement_timestamp())
	FROM flight WHERE $1 = '' OR tenant = $1) AS f,
	(SELECT count(*) FILTER (WHERE status <> 'expired'), count(*) FILTER (WHERE status = 'expired'), min(expires_at)
	FROM expired WHERE $1 = '' OR tenant = $1) AS x`

// activities finds the activities with waiting work, with one index probe each. It is part of a WITH RECURSIVE.
const activities = `activities AS (
	(SELECT workflow, transition FROM {pawl}.command WHERE ` + waits + ` ORDER BY workflow, transition, run_at LIMIT 1)
	UNION ALL
	(SELECT next.workflow, next.transition FROM activities AS a CROSS JOIN LATERAL (SELECT c.workflow, c.transition FROM {pawl}.command AS c
		WHERE ` + waits + ` AND (c.workflow, c.transition) > (a.workflow, a.transition)
		ORDER BY c.workflow, c.transition, c.run_at LIMIT 1) AS next))`

// smallTable is the size up to which completed commands are counted: reading it takes milliseconds, and statistics of small tables are
// poor.
const smallTable = 4 << 20

const (
	commandSizeSQL = `SELECT pg_relation_size('{pawl}.command') <= $1`

	// finishedSQL selects the commands of a status. Parameters: tenant or "", status.
	finishedSQL = `FROM {pawl}.command WHERE status = $2 AND ($1 = '' OR tenant = $1)`
)

// Keys returns the state of the keys of a tenant's commands, or of all tenants for "". It is cheap on large tables: finished commands are
// estimated there, and commands in flight are counted up to a limit.
func (q *Reader) Keys(ctx context.Context, k *inspect.Keys) error {
	if err := q.keys(ctx, k); err != nil {
		return ReadError("keys", err)
	}
	return nil
}

func (q *Reader) keys(ctx context.Context, k *inspect.Keys) error {
	var pending, processing, retryable int64
	var flight, due, stale, lapsed, expired *time.Time
	err := q.pool.QueryRow(ctx, q.in(KeysSQL), plannedNow, k.Tenant, inspect.MaxCounted, inspect.ManyAttempts).Scan(
		&k.At, &pending, &processing, &retryable, &k.Scheduled, &k.Due, &k.Stale, &k.Lapsed, &k.Stuck, &k.Attempts, &k.MostTried, &flight, &due,
		&stale, &lapsed, &k.Expired, &k.Forgotten, &expired, &k.AtLeast)
	if err != nil {
		return err
	}
	k.At, k.OldestInFlight, k.OldestDue, k.OldestStale = k.At.UTC(), timeOf(flight), timeOf(due), timeOf(stale)
	k.OldestLapsed, k.OldestExpired = timeOf(lapsed), timeOf(expired)
	k.Statuses = []inspect.StatusCount{
		{Status: transitions.Pending, Count: pending}, {Status: transitions.Processing, Count: processing},
		{Status: transitions.FailedRetryable, Count: retryable},
	}
	var small bool
	if err := q.pool.QueryRow(ctx, q.in(commandSizeSQL), plannedNow, smallTable).Scan(&small); err != nil {
		return err
	}
	for _, status := range []transitions.Status{transitions.Succeeded, transitions.FailedFinal, transitions.Expired} {
		count, err := q.finished(ctx, k.Tenant, status, small)
		if err != nil {
			return err
		}
		k.Statuses = append(k.Statuses, inspect.StatusCount{Status: status, Count: count, Estimate: !small})
	}
	return nil
}

// finished counts the commands of a status, or returns the planner's estimate.
func (q *Reader) finished(ctx context.Context, tenant string, status transitions.Status, exactly bool) (count int64, err error) {
	if exactly {
		err = q.pool.QueryRow(ctx, q.in(`SELECT count(*) `+finishedSQL), plannedNow, tenant, string(status)).Scan(&count)
		return count, err
	}
	// The planner expects one row of a status without statistics.
	if count, err = q.expected(ctx, q.pool, `SELECT `+finishedSQL, tenant, string(status)); count == 1 {
		count = 0
	}
	return count, err
}

// expected is how many rows the planner expects of a query.
func (q *Reader) expected(ctx context.Context, by Querier, sql string, args ...any) (int64, error) {
	// A utility statement has no plan to keep, and the planner has to see the values.
	var raw []byte
	args = append([]any{pgx.QueryExecModeExec}, args...)
	if err := by.QueryRow(ctx, q.in(`EXPLAIN (FORMAT JSON) `+sql), args...).Scan(&raw); err != nil {
		return 0, err
	}
	var plans []struct {
		Plan struct {
			Rows float64 `json:"Plan Rows"`
		}
	}
	if err := json.Unmarshal(raw, &plans); err != nil {
		return 0, err
	}
	if len(plans) != 1 {
		return 0, fmt.Errorf("one plan expected: %s", raw)
	}
	return int64(plans[0].Plan.Rows), nil
}

// timeOf is a time that may be NULL.
func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
