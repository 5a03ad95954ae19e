package engine

import (
	"context"

	"github.com/pawlhq/pawl/engine/internal/migrate"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Operate does what an operator asks: pause, resume, migrate or correct the instance that c names,
// or retry, resolve or abandon the stuck command that o names. It is a command
// like any other: named by c's key, audited with c's actor and o's reason, and
// replayed. It is decided at once: c.NotBefore and c.HappenedAt are refused, and
// so is c.IfVersion unless it is about an instance.
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
	if problem := transitions.TextProblem(reason, transitions.MaxReason); problem != "" {
		return by, workflow.Errorf(workflow.InvalidRequest, "the reason %s", problem)
	}
	return by, nil
}
