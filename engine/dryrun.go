package engine

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// DryRun returns the answer that a command would have now, without effect. It needs no key, and ignores stored ones, so its refusals are
// not final.
func (e *Engine) DryRun(ctx context.Context, c transitions.Command) (transitions.Receipt, error) {
	if c.Key == "" {
		c.Key = "dry-run"
	}
	p, err := decide.Accept(c)
	if err != nil {
		return transitions.Receipt{}, err
	}
	if err := e.resolve(ctx, e.config.Pool, p); err != nil {
		return transitions.Receipt{}, e.elsewhere(ctx, e.config.Pool, p, err)
	}
	var inst *transitions.Instance
	if !p.Creates || p.BusinessKey != "" {
		found, err := e.reader.Instance(ctx, p.Tenant, p.Instance)
		switch {
		case err == nil:
			inst = &found
		case workflow.CodeOf(err) != workflow.InstanceNotFound:
			return transitions.Receipt{}, err
		}
	}
	now := e.clock.Now()
	w, err := decide.VersionFor(p, inst, e.registry.Find)
	if err != nil {
		return transitions.Receipt{}, err
	}
	var unread error
	d := decide.DecideAll(p, w, inst, e.registry.Find, func(id uuid.UUID) bool {
		_, err := e.reader.Instance(ctx, p.Tenant, id)
		if err != nil && workflow.CodeOf(err) != workflow.InstanceNotFound {
			unread = cmp.Or(unread, err)
		}
		return err == nil
	}, now)
	switch {
	case unread != nil:
		return transitions.Receipt{}, unread
	case !d.Stored:
		return transitions.Receipt{}, d.Err
	}
	receipt := dryReceipt(p, &d)
	if d.Flight != nil {
		receipt.Record = p.Begun(&d, now)
	}
	return receipt, nil
}

// DryRunOperation returns the answer that an operation on an instance would have now, without effect. It needs no key, and ignores stored
// ones. after is the instance after the operation, nil if it would not change. Errors: those of Operate; InvalidRequest for an operation on
// a command.
func (a *Admin) DryRunOperation(ctx context.Context, c transitions.Command, o transitions.Operation) (
	receipt transitions.Receipt, after *transitions.Instance, err error,
) {
	if c.Key == "" {
		c.Key = "dry-run"
	}
	if o.Target.Scope != "" {
		return receipt, nil, workflow.Errorf(workflow.InvalidRequest, "only an operation on an instance can be tried")
	}
	p, err := a.e.prepareOperation(ctx, c, o)
	if err != nil {
		return receipt, nil, err
	}
	inst, err := a.e.reader.Instance(ctx, p.Tenant, p.Instance)
	if err != nil {
		return receipt, nil, err
	}
	w, err := decide.VersionFor(p, &inst, a.e.registry.Find)
	if err != nil {
		return receipt, nil, err
	}
	d := decide.Decide(p, w, &inst, a.e.clock.Now())
	if !d.Stored {
		return receipt, nil, d.Err
	}
	return dryReceipt(p, &d), d.After, nil
}

// dryReceipt returns the receipt of a decision that is not stored.
func dryReceipt(p *decide.Prepared, d *decide.Decision) transitions.Receipt {
	receipt := decide.ReceiptOf(p, d, 0)
	if receipt.Refused() {
		receipt.Body = transitions.ProblemOf(receipt.Err()).Unkept().JSON()
	}
	return receipt
}
