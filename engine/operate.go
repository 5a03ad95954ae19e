package engine

import (
	"context"

	"github.com/pawlhq/pawl/internal/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Operate does what an operator asks: pause, resume or migrate the instance that c names,
// or retry, resolve or abandon the stuck command that o names. It is a command
// like any other: named by c's key, audited with c's actor and o's reason, and
// replayed.
//
// Errors: those of Submit; CommandNotFound; MigrationWaits, NotOnThisNode where this node has no such plan.
func (e *Engine) Operate(ctx context.Context, c transitions.Command, o transitions.Operation) (transitions.Receipt, error) {
	c = c.WithDefaults()
	if err := transitions.CheckTenant(c.Tenant); err != nil {
		return transitions.Receipt{}, err
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
		return transitions.Receipt{}, err
	}
	p, err := decide.Operate(c, o, e.registry.Migrations(c.Workflow, o.To)...)
	if err != nil {
		return transitions.Receipt{}, err
	}
	return e.do(ctx, p)
}

// operator checks who asks for something, and why.
func operator(by, reason string) (string, error) {
	setDefault(&by, transitions.DefaultActor)
	if problem := transitions.TextProblem(by, transitions.MaxActor); problem != "" {
		return by, workflow.Errorf(workflow.InvalidRequest, "the actor %s", problem)
	}
	if problem := transitions.TextProblem(reason, transitions.MaxReason); problem != "" {
		return by, workflow.Errorf(workflow.InvalidRequest, "the reason %s", problem)
	}
	return by, nil
}
