package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

// Pauses are the workflows of one schema that begin nothing new.
type Pauses struct {
	pool                           *pgxpool.Pool
	list, exists, add, due, remove string
}

// NewPauses prepares to work. in puts the schema's name into a statement.
func NewPauses(pool *pgxpool.Pool, in func(sql string) string) *Pauses {
	return &Pauses{
		pool: pool,
		list: in(`SELECT tenant, workflow, actor, coalesce(reason, ''), at FROM {pawl}.paused
			WHERE $1 = '' OR tenant = $1 ORDER BY tenant, workflow`),
		add: in(`INSERT INTO {pawl}.paused (tenant, workflow, actor, reason, at) SELECT $1, $2, $3, nullif($4, ''), $5
			FROM {pawl}.durable() ON CONFLICT (tenant, workflow) DO NOTHING`),
		exists: in("SELECT EXISTS (SELECT FROM {pawl}.paused WHERE tenant = $1 AND workflow = $2)"),
		due:    in(dueInPauseSQL),
		remove: in("DELETE FROM {pawl}.paused USING {pawl}.durable() WHERE tenant = $1 AND workflow = $2"),
	}
}

// dueInPauseSQL processes the scheduled commands that became due during a pause, before it ends. They could not be taken, so they must not
// expire because of it: they are due now, and count as claimed before. One call reads a batch of due commands of all workflows, and returns
// the position for the next call, NULL at the end, and the number of locked ones. Parameters: tenant, workflow, now, position, batch.
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

// List lists what a tenant has paused, or all for "". Its errors are *workflow.Error.
func (p *Pauses) List(ctx context.Context, tenant string) ([]inspect.PausedWorkflow, error) {
	found, err := p.pool.Query(ctx, p.list, tenant)
	if err != nil {
		return nil, ReadError("paused workflows", err)
	}
	list, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (w inspect.PausedWorkflow, err error) {
		err = row.Scan(&w.Tenant, &w.Workflow, &w.Actor, &w.Reason, &w.At)
		return w, err
	})
	if err != nil {
		return nil, ReadError("paused workflows", err)
	}
	return list, nil
}

// Paused reports whether a workflow is paused.
func (p *Pauses) Paused(ctx context.Context, tenant, workflow string) (paused bool, err error) {
	err = p.pool.QueryRow(ctx, p.exists, tenant, workflow).Scan(&paused)
	return paused, err
}

// Add pauses a workflow, if it is not paused.
func (p *Pauses) Add(ctx context.Context, tenant, workflow, actor, reason string, now time.Time) error {
	_, err := p.pool.Exec(ctx, p.add, tenant, workflow, actor, reason, now)
	return err
}

// Remove ends a pause.
func (p *Pauses) Remove(ctx context.Context, tenant, workflow string) error {
	_, err := p.pool.Exec(ctx, p.remove, tenant, workflow)
	return err
}

// LetDueBeTaken runs dueInPauseSQL. place is where the last call stopped, nil at the beginning and at the end; locked is the number of
// locked commands.
func (p *Pauses) LetDueBeTaken(ctx context.Context, tenant, workflow string, now time.Time, place *string, batch int) (
	next *string, locked int64, err error,
) {
	err = p.pool.QueryRow(ctx, p.due, plannedNow, tenant, workflow, now, place, batch).Scan(&next, &locked)
	return next, locked, err
}
