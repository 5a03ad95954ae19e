package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

// Pauses is the table of the paused workflows.
type Pauses struct {
	pool *pgxpool.Pool
	in   func(sql string) string
}

// NewPauses returns Pauses; in inserts the schema's name into a statement.
func NewPauses(pool *pgxpool.Pool, in func(sql string) string) *Pauses { return &Pauses{pool, in} }

// dueInPauseSQL processes the scheduled commands that became due during a pause, before it ends. They must not expire because of it: they
// are due now, and count as claimed before. One call reads a batch of due commands of all workflows, and returns the position for the next
// call, NULL at the end, and the number of locked commands. Parameters: tenant, workflow, now, position, limit.
const dueInPauseSQL = `
WITH looked AS MATERIALIZED (
	SELECT c.ctid AS place, c.tenant, c.workflow, c.run_at, c.scope, c.key FROM {pawl}.command AS c
	WHERE c.phase = 'scheduled' AND NOT starts_with(c.scope, '` + transitions.Reserved + `') AND c.run_at < $3::timestamptz
		AND (c.run_at, c.tenant, c.scope, c.key) > (coalesce(($4::json ->> 0)::timestamptz, '-infinity'),
			coalesce($4::json ->> 1, ''), coalesce($4::json ->> 2, ''), coalesce($4::json ->> 3, ''))
	ORDER BY c.run_at, c.tenant, c.scope, c.key LIMIT $5::bigint),
mine AS (SELECT place FROM looked WHERE tenant = $1 AND workflow = $2),
moved AS (
	UPDATE {pawl}.command AS c SET run_at = $3, attempt = greatest(c.attempt, 1), revision = c.revision + 1, updated_at = $3
	FROM (SELECT found.place FROM mine CROSS JOIN LATERAL (SELECT x.ctid AS place FROM {pawl}.command AS x
		WHERE x.ctid = mine.place AND x.phase = 'scheduled' AND x.run_at < $3 FOR NO KEY UPDATE SKIP LOCKED) AS found) AS u
	WHERE c.ctid = u.place RETURNING 1)
SELECT (SELECT json_build_array(run_at, tenant, scope, key)::text FROM looked ORDER BY run_at, tenant, scope, key OFFSET $5::bigint - 1),
	(SELECT count(*) FROM mine) - (SELECT count(*) FROM moved)`

// List lists the paused workflows of a tenant, or of all tenants for "". Its errors are *workflow.Error.
func (p *Pauses) List(ctx context.Context, tenant string) ([]inspect.PausedWorkflow, error) {
	return collect(ctx, p.pool, "paused workflows", pgx.RowToStructByPos[inspect.PausedWorkflow], p.in(`
SELECT tenant, workflow, actor, coalesce(reason, ''), at FROM {pawl}.paused WHERE $1 = '' OR tenant = $1 ORDER BY tenant, workflow`), tenant)
}

// Paused reports whether a workflow is paused.
func (p *Pauses) Paused(ctx context.Context, tenant, workflow string) (paused bool, err error) {
	sql := p.in("SELECT EXISTS (SELECT FROM {pawl}.paused WHERE tenant = $1 AND workflow = $2)")
	err = p.pool.QueryRow(ctx, sql, tenant, workflow).Scan(&paused)
	return paused, err
}

// Add pauses a workflow, if it is not paused.
func (p *Pauses) Add(ctx context.Context, tenant, workflow, actor, reason string, now time.Time) error {
	_, err := p.pool.Exec(ctx, p.in(`INSERT INTO {pawl}.paused (tenant, workflow, actor, reason, at)
SELECT $1, $2, $3, nullif($4, ''), $5 FROM {pawl}.durable() ON CONFLICT (tenant, workflow) DO NOTHING`), tenant, workflow, actor, reason, now)
	return err
}

// Remove ends a pause.
func (p *Pauses) Remove(ctx context.Context, tenant, workflow string) error {
	sql := p.in("DELETE FROM {pawl}.paused USING {pawl}.durable() WHERE tenant = $1 AND workflow = $2")
	_, err := p.pool.Exec(ctx, sql, tenant, workflow)
	return err
}

// LetDueBeTaken executes dueInPauseSQL. place is where the last call stopped, nil at the start and at the end; locked is the number of
// locked commands.
func (p *Pauses) LetDueBeTaken(ctx context.Context, tenant, workflow string, now time.Time, place *string, batch int) (
	next *string, locked int64, err error,
) {
	err = p.pool.QueryRow(ctx, p.in(dueInPauseSQL), plannedNow, tenant, workflow, now, place, batch).Scan(&next, &locked)
	return next, locked, err
}
