package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/engine/internal/migrate"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/definitions"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Operate does what an operator asks: pause, resume, migrate or correct the instance that c names, or retry, resolve or abandon the stuck
// command that o names. It is a command like any other: named by c's key, audited with c's actor and o's reason, and replayed. It is
// decided at once: c.NotBefore and c.HappenedAt are refused, and so is c.IfVersion unless it is about an instance.
//
// Errors: those of Submit; CommandNotFound; NotOnThisNode where this node has no such plan; MigrationWaits where an activity is in
// flight that the plan lets end first, or a node serves that does not know the version.
func (a *Admin) Operate(ctx context.Context, c transitions.Command, o transitions.Operation) (transitions.Receipt, error) {
	p, err := a.e.prepareOperation(ctx, c, o)
	if err != nil {
		return transitions.Receipt{}, err
	}
	return a.e.do(ctx, p)
}

// prepareOperation finds what the operation is about, and makes it ready to be decided.
func (e *Engine) prepareOperation(ctx context.Context, c transitions.Command, o transitions.Operation) (*decide.Prepared, error) {
	c = c.WithDefaults()
	if err := transitions.CheckTenant(c.Tenant); err != nil {
		return nil, err
	}
	var err error
	if o.Target.Scope != "" {
		var target transitions.Record
		target, err = e.reader.Record(ctx, nil, transitions.Ref{Tenant: c.Tenant, Scope: o.Target.Scope, Key: o.Target.Key})
		c.Instance, c.Workflow = target.Instance, target.Workflow
	} else {
		c.Workflow, err = e.workflowOf(ctx, e.config.Pool, c.Tenant, c.Instance)
	}
	if err != nil {
		return nil, err
	}
	p, err := decide.Operate(c, o, e.registry.Migrations(c.Workflow, o.To)...)
	if err != nil || o.Action != transitions.Migrate {
		return p, err
	}
	lacking, err := e.lacking(ctx, c.Workflow, o.To)
	if len(lacking) > 0 {
		p = p.Held(migrate.HeldBy(lacking, o.To))
	}
	return p, err
}

// operator checks who asks for something, and why.
func operator(by, reason string) (string, error) {
	setDefault(&by, transitions.DefaultActor)
	if err := decide.CheckActor(by); err != nil {
		return by, err
	}
	return by, checkText("reason", reason, transitions.MaxReason)
}

// pauses is which workflows begin nothing new, as this node knows it. Other nodes' changes are known when it polls for due work.
type pauses struct {
	rows *store.Pauses

	mu    sync.RWMutex
	known map[pausedWorkflow]bool
	told  [][2]string // what was heard last
	read  time.Time   // what was asked for before this may be older
}

type pausedWorkflow struct{ tenant, workflow string }

// resumeBatch is the number of commands per call, and resumePace the delay before locked ones are retried.
const (
	resumeBatch = 1000
	resumePace  = 50 * time.Millisecond
)

// endPause makes the commands that became due during a pause available, a batch at a time, and ends the pause when none is left that would
// expire because of it. It waits for locked commands up to patience; after that the pause remains and can be ended again.
func (p *pauses) endPause(ctx context.Context, tenant, name string, now time.Time, patience time.Duration) error {
	if paused, err := p.rows.Paused(ctx, tenant, name); err != nil || !paused {
		return err
	}
	for begun := time.Now(); ; {
		var locked int64
		for place, more := (*string)(nil), true; more; more = place != nil {
			var some int64
			var err error
			if place, some, err = p.rows.LetDueBeTaken(ctx, tenant, name, now, place, resumeBatch); err != nil {
				return err
			}
			locked += some
		}
		if locked == 0 {
			return p.rows.Remove(ctx, tenant, name)
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
	list, err := p.rows.List(ctx, "")
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

// PauseWorkflow lets the tenant's instances of a workflow finish what is in flight, and begin nothing new: commands are refused with
// Paused, timers and scheduled commands wait. It holds at once on this node, and within about two seconds on others. Pausing what is paused
// changes nothing.
//
// Errors: WorkflowNotFound, InvalidRequest, Unavailable.
func (a *Admin) PauseWorkflow(ctx context.Context, tenant, name, actor, reason string) error {
	tenant, err := a.e.pausable(tenant, name)
	if err != nil {
		return err
	}
	if actor, err = operator(actor, reason); err != nil {
		return err
	}
	if err := a.e.pauses.rows.Add(ctx, tenant, name, actor, reason, a.e.clock.Now()); err != nil {
		return pauseError(err)
	}
	return a.e.pauses.load(ctx)
}

// ResumeWorkflow ends a pause. Scheduled commands that became due during the pause are run now, however long it was. It is a no-op for a
// workflow that is not paused.
//
// Errors: WorkflowNotFound, InvalidRequest, Unavailable; Locked if another transaction holds one of those commands, and the pause remains.
func (a *Admin) ResumeWorkflow(ctx context.Context, tenant, name string) error {
	tenant, err := a.e.pausable(tenant, name)
	if err != nil {
		return err
	}
	if err := a.e.pauses.endPause(ctx, tenant, name, a.e.clock.Now(), a.e.config.Pipeline.LockWait); err != nil {
		return pauseError(err)
	}
	err = a.e.pauses.load(ctx)
	a.e.inflight.Wake()
	return err
}

// PausedWorkflows lists the workflows that the tenant has paused.
func (a *Admin) PausedWorkflows(ctx context.Context, tenant string) ([]inspect.PausedWorkflow, error) {
	if err := transitions.CheckTenant(tenant); err != nil {
		return nil, err
	}
	return a.e.pauses.rows.List(ctx, tenantOr(tenant))
}

// PausedInstances lists the instances that are paused themselves, by workflow and id, and says whether there are more.
// Errors: InvalidRequest, WorkflowNotFound, Unavailable.
func (a *Admin) PausedInstances(ctx context.Context, f inspect.PausedFilter) (list []inspect.PausedInstance, more bool, err error) {
	f.Tenant, f.Limit = tenantOr(f.Tenant), pageSize(f.Limit)
	if err := a.e.checkWorkflow(f.Tenant, f.Workflow); err != nil {
		return nil, false, err
	}
	return a.e.reader.PausedInstances(ctx, f)
}

func (e *Engine) pausable(tenant, name string) (string, error) {
	if name == "" {
		return "", definitions.NotFound(name)
	}
	return tenantOr(tenant), e.checkWorkflow(tenant, name)
}

// pauseError is a failed change of the pauses as the caller may see it.
func pauseError(err error) error {
	if _, ok := errors.AsType[*workflow.Error](err); ok {
		return err
	}
	return &workflow.Error{Code: workflow.Unavailable, Message: "the database could not be written; try again",
		Cause: fmt.Errorf("pause or resume a workflow: %w", err)}
}
