package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/definitions"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// pauses is which workflows begin nothing new, as this node knows it. Other
// nodes' changes are known when it polls for due work.
type pauses struct {
	pool              *pgxpool.Pool
	list, exists, add string
	due, remove       string

	mu    sync.RWMutex
	known map[pausedWorkflow]bool
	told  [][2]string // what was heard last
	read  time.Time   // what was asked for before this may be older
}

type pausedWorkflow struct{ tenant, workflow string }

func newPauses(pool *pgxpool.Pool, in func(string) string) *pauses {
	return &pauses{
		pool: pool,
		list: in("SELECT tenant, workflow, actor, coalesce(reason, ''), at FROM pawl.paused WHERE $1 = '' OR tenant = $1 ORDER BY tenant, workflow"),
		add: in(`INSERT INTO pawl.paused (tenant, workflow, actor, reason, at) VALUES ($1, $2, $3, nullif($4, ''), $5)
			ON CONFLICT (tenant, workflow) DO NOTHING`),
		exists: in("SELECT EXISTS (SELECT FROM pawl.paused WHERE tenant = $1 AND workflow = $2)"),
		due:    in(dueInPauseSQL),
		remove: in("DELETE FROM pawl.paused WHERE tenant = $1 AND workflow = $2"),
	}
}

// dueInPauseSQL sees to the scheduled commands that became due in a pause, before it
// ends. Nobody was to take them, so they are not given up for it: they are due now,
// and count as claimed before. One call looks at a batch of what is due, of all
// workflows, and returns the place for the next, NULL at the end, and how many
// somebody has locked. Parameters: tenant, workflow, now, the place, batch.
const dueInPauseSQL = `
WITH looked AS MATERIALIZED (
	SELECT c.ctid AS place, c.tenant, c.workflow, c.run_at, c.scope, c.key FROM pawl.command AS c
	WHERE c.phase = 'scheduled' AND NOT starts_with(c.scope, '` + transitions.Reserved + `') AND c.run_at < $3::timestamptz
		AND (c.run_at, c.tenant, c.scope, c.key) > (coalesce(($4::json ->> 0)::timestamptz, '-infinity'),
			coalesce($4::json ->> 1, ''), coalesce($4::json ->> 2, ''), coalesce($4::json ->> 3, ''))
	ORDER BY c.run_at, c.tenant, c.scope, c.key LIMIT $5::bigint),
mine AS (SELECT place FROM looked WHERE tenant = $1 AND workflow = $2),
moved AS (
	UPDATE pawl.command AS c SET run_at = $3, attempt = greatest(c.attempt, 1), revision = c.revision + 1, updated_at = $3
	FROM (SELECT found.place FROM mine CROSS JOIN LATERAL (SELECT x.ctid AS place FROM pawl.command AS x
		WHERE x.ctid = mine.place AND x.phase = 'scheduled' AND x.run_at < $3 FOR NO KEY UPDATE SKIP LOCKED) AS found) AS u
	WHERE c.ctid = u.place RETURNING 1)
SELECT (SELECT json_build_array(run_at, tenant, scope, key)::text FROM looked ORDER BY run_at, tenant, scope, key OFFSET $5::bigint - 1),
	(SELECT count(*) FROM mine) - (SELECT count(*) FROM moved)`

// resumeBatch is how many commands one call of dueInPauseSQL looks at, and
// resumePace how long to leave those alone that somebody has locked.
const (
	resumeBatch = 1000
	resumePace  = 50 * time.Millisecond
)

// endPause lets what became due in a pause be taken, a batch at a time, and ends it
// when nothing is left that would be given up for it. What somebody has locked it
// waits for, up to patience; then the pause stays, and can be ended again.
func (p *pauses) endPause(ctx context.Context, tenant, name string, now time.Time, patience time.Duration) error {
	var paused bool
	if err := p.pool.QueryRow(ctx, p.exists, tenant, name).Scan(&paused); err != nil || !paused {
		return err
	}
	for begun := time.Now(); ; {
		var locked int64
		for place, more := (*string)(nil), true; more; more = place != nil {
			var some int64
			if err := p.pool.QueryRow(ctx, p.due, plannedNow, tenant, name, now, place, resumeBatch).Scan(&place, &some); err != nil {
				return err
			}
			locked += some
		}
		if locked == 0 {
			_, err := p.pool.Exec(ctx, p.remove, tenant, name)
			return err
		}
		if time.Since(begun) > patience {
			return workflow.Errorf(workflow.Locked, "another transaction holds %d commands that wait for the end of the pause; try again", locked)
		}
		select {
		case <-time.After(resumePace):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *pauses) has(tenant, workflow string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.known[pausedWorkflow{tenant, workflow}]
}

// load reads all that are paused.
func (p *pauses) load(ctx context.Context) error {
	list, err := p.of(ctx, "")
	if err != nil {
		return err
	}
	known := make(map[pausedWorkflow]bool, len(list))
	for _, w := range list {
		known[pausedWorkflow{w.Tenant, w.Workflow}] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known, p.told, p.read = known, nil, time.Now()
	return nil
}

// heard takes the list that came with the node's poll for due work.
func (p *pauses) heard(all [][2]string, asked time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if asked.Before(p.read) || p.told != nil && slices.Equal(all, p.told) {
		return
	}
	p.known, p.told = make(map[pausedWorkflow]bool, len(all)), all
	for _, w := range all {
		p.known[pausedWorkflow{w[0], w[1]}] = true
	}
}

// of lists what a tenant has paused, or all for "".
func (p *pauses) of(ctx context.Context, tenant string) ([]inspect.PausedWorkflow, error) {
	found, err := p.pool.Query(ctx, p.list, tenant)
	if err != nil {
		return nil, readError("paused workflows", err)
	}
	list, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (w inspect.PausedWorkflow, err error) {
		err = row.Scan(&w.Tenant, &w.Workflow, &w.Actor, &w.Reason, &w.At)
		return w, err
	})
	if err != nil {
		return nil, readError("paused workflows", err)
	}
	return list, nil
}

// PauseWorkflow lets the tenant's instances of a workflow finish what is in
// flight, and begin nothing new: commands are refused with Paused, timers and
// scheduled commands wait. It holds at once on this node, and within about two
// seconds on others. Pausing what is paused changes nothing.
//
// Errors: WorkflowNotFound, InvalidRequest, Unavailable.
func (e *Engine) PauseWorkflow(ctx context.Context, tenant, name, actor, reason string) error {
	tenant, err := e.pausable(tenant, name)
	if err != nil {
		return err
	}
	if actor == "" {
		actor = transitions.DefaultActor
	}
	if problem := transitions.TextProblem(actor, transitions.MaxActor); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the actor %s", problem)
	}
	if problem := transitions.TextProblem(reason, transitions.MaxReason); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the reason %s", problem)
	}
	if _, err := e.config.Pool.Exec(ctx, e.pauses.add, tenant, name, actor, reason, e.clock.Now()); err != nil {
		return pauseError(err)
	}
	return e.pauses.load(ctx)
}

// ResumeWorkflow ends a pause. Scheduled commands that became due in it are done now,
// however long it was. Resuming what is not paused changes nothing.
//
// Errors: WorkflowNotFound, InvalidRequest, Unavailable; Locked where another
// transaction holds one of those commands, and the pause goes on.
func (e *Engine) ResumeWorkflow(ctx context.Context, tenant, name string) error {
	tenant, err := e.pausable(tenant, name)
	if err != nil {
		return err
	}
	if err := e.pauses.endPause(ctx, tenant, name, e.clock.Now(), e.config.Pipeline.LockWait); err != nil {
		return pauseError(err)
	}
	return e.pauses.load(ctx)
}

// PausedWorkflows lists the workflows that the tenant has paused.
func (e *Engine) PausedWorkflows(ctx context.Context, tenant string) ([]inspect.PausedWorkflow, error) {
	if err := transitions.CheckTenant(tenant); err != nil {
		return nil, err
	}
	return e.pauses.of(ctx, tenantOr(tenant))
}

func (e *Engine) pausable(tenant, name string) (string, error) {
	if err := transitions.CheckTenant(tenant); err != nil {
		return "", err
	}
	if e.registry.Find(name, 0) == nil {
		return "", definitions.NotFound(name)
	}
	return tenantOr(tenant), nil
}

// pauseError is a failed change of the pauses as the caller may see it.
func pauseError(err error) error {
	if _, ok := errors.AsType[*workflow.Error](err); ok {
		return err
	}
	return &workflow.Error{Code: workflow.Unavailable, Message: "the database could not be written; try again",
		Cause: fmt.Errorf("pause or resume a workflow: %w", err)}
}
