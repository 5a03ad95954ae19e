package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// pauses is which workflows begin nothing new, as this node knows it. Other
// nodes' changes are known when it looks for due work.
type pauses struct {
	pool              *pgxpool.Pool
	list, add, remove string

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
		remove: in(resumeSQL),
	}
}

// resumeSQL ends a pause. The time in it does not count for the scheduled commands
// that became due meanwhile: nobody was to take them, so they are not given up for
// it. Parameters: tenant, workflow, now.
const resumeSQL = `
WITH resumed AS (DELETE FROM pawl.paused WHERE tenant = $1 AND workflow = $2 RETURNING at)
UPDATE pawl.command AS c SET run_at = c.run_at + ($3 - greatest(c.run_at, u.at)), revision = c.revision + 1, updated_at = $3
FROM (SELECT found.row, r.at FROM resumed AS r CROSS JOIN LATERAL (SELECT x.ctid AS row FROM pawl.command AS x
	WHERE x.run_at <= $3 AND x.tenant = $1 AND x.workflow = $2 AND x.phase = 'scheduled' AND NOT starts_with(x.scope, '` + transitions.Reserved + `')
	FOR NO KEY UPDATE SKIP LOCKED) AS found) AS u
WHERE c.ctid = u.row`

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

// heard takes the list that came with the node's look for due work.
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
func (p *pauses) of(ctx context.Context, tenant string) ([]transitions.PausedWorkflow, error) {
	found, err := p.pool.Query(ctx, p.list, tenant)
	if err != nil {
		return nil, readError("paused workflows", err)
	}
	list, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (w transitions.PausedWorkflow, err error) {
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
	return e.changePauses(ctx, e.pauses.add, tenant, name, actor, reason, e.now())
}

// ResumeWorkflow ends a pause. Resuming what is not paused changes nothing.
func (e *Engine) ResumeWorkflow(ctx context.Context, tenant, name string) error {
	tenant, err := e.pausable(tenant, name)
	if err != nil {
		return err
	}
	return e.changePauses(ctx, e.pauses.remove, tenant, name, e.now())
}

// PausedWorkflows lists the workflows that the tenant has paused.
func (e *Engine) PausedWorkflows(ctx context.Context, tenant string) ([]transitions.PausedWorkflow, error) {
	if err := transitions.CheckTenant(tenant); err != nil {
		return nil, err
	}
	return e.pauses.of(ctx, tenantOr(tenant))
}

func (e *Engine) pausable(tenant, name string) (string, error) {
	if err := transitions.CheckTenant(tenant); err != nil {
		return "", err
	}
	if e.registry.find(name, 0) == nil {
		return "", errNoWorkflow(name)
	}
	return tenantOr(tenant), nil
}

func (e *Engine) changePauses(ctx context.Context, sql string, args ...any) error {
	if _, err := e.config.Pool.Exec(ctx, sql, args...); err != nil {
		return &workflow.Error{Code: workflow.Unavailable, Message: "the database could not be written; try again",
			Cause: fmt.Errorf("pause or resume a workflow: %w", err)}
	}
	return e.pauses.load(ctx)
}
