package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// DeadMessages lists messages that were not consumed, without their bodies, by
// consumer and then the oldest first, and says whether there are more.
//
// Errors: InvalidRequest, Unavailable.
func (a *Admin) DeadMessages(ctx context.Context, f inspect.DeadMessageFilter) (list []inspect.DeadMessage, more bool, err error) {
	f.Tenant, f.Limit = tenantOr(f.Tenant), pageSize(f.Limit)
	setDefault(&f.Status, inspect.MessageWaiting)
	if err := transitions.CheckTenant(f.Tenant); err != nil {
		return nil, false, err
	}
	switch f.Status {
	case inspect.MessageWaiting, inspect.MessageRetried, inspect.MessageDiscarded:
	default:
		return nil, false, workflow.Errorf(workflow.InvalidRequest, "a dead message is %s, %s or %s", inspect.MessageWaiting,
			inspect.MessageRetried, inspect.MessageDiscarded)
	}
	if f.BusinessKey != "" && f.Workflow == "" {
		return nil, false, errKeyAlone
	}
	if err := cmp.Or(checkText("consumer", f.Consumer, transitions.MaxConsumer),
		checkText("workflow", f.Workflow, workflow.MaxBusinessKey),
		checkText("business key", f.BusinessKey, workflow.MaxBusinessKey)); err != nil {
		return nil, false, err
	}
	return a.e.inbox.List(ctx, f)
}

// DeadMessage reads one with its body. Errors: NotFound, Unavailable.
func (a *Admin) DeadMessage(ctx context.Context, r transitions.MessageRef) (inspect.DeadMessage, error) {
	r.Tenant = tenantOr(r.Tenant)
	if (transitions.Message{Tenant: r.Tenant, Consumer: r.Consumer, ID: r.ID}).Check() != nil { // PostgreSQL would fail the query
		return inspect.DeadMessage{}, workflow.Errorf(workflow.NotFound, "no such dead message")
	}
	return a.e.inbox.Get(ctx, r)
}

// RetryMessage consumes a dead message again, unchanged, on behalf of an operator. A refusal that is its stored answer is withdrawn; an
// activity that was tried and failed is not repeated. A message that succeeds is listed as retried, otherwise as waiting. A discarded
// message with the same id does not interfere.
//
// Errors: NotFound; TooLarge if the body was not kept; those of Consume.
func (a *Admin) RetryMessage(ctx context.Context, ref transitions.MessageRef, by, reason string) (transitions.Receipt, error) {
	by, err := operator(by, reason)
	if err != nil {
		return transitions.Receipt{}, err
	}
	d, err := a.DeadMessage(ctx, ref)
	if err != nil {
		return transitions.Receipt{}, err
	}
	body, err := d.Sent()
	if err != nil {
		return transitions.Receipt{}, err
	}
	if d.Status != inspect.MessageRetried {
		if err := a.e.inbox.Reopen(ctx, d, a.e.clock.Now()); err != nil {
			return transitions.Receipt{}, err
		}
	}
	m := transitions.Message{Tenant: d.Tenant, Consumer: d.Consumer, ID: d.ID, Type: d.Type, Body: body}
	receipt, err := a.e.deliver(ctx, m)
	switch decide.FateOf(m, receipt, err, 0) {
	case decide.FateDone:
		return receipt, a.e.inbox.Retried(ctx, d.MessageRef, by, reason, a.e.clock.Now())
	case decide.FateDead:
		failure := err
		if failure == nil {
			failure = receipt.Err()
		}
		if _, err := a.e.inbox.Put(ctx, m, decide.AboutMessage(m, a.e.registry.Routes()[m.Consumer]), failure, a.e.clock.Now()); err != nil {
			return transitions.Receipt{}, err
		}
	}
	return receipt, err
}

// DiscardMessage marks a dead message as never to be consumed, even if its sender sends it again. It returns the message without its body.
// A message that was consumed meanwhile, here or by SQL, is MessageRetried. A discarded message can be retried.
//
// Errors: NotFound, InvalidRequest, Unavailable.
func (a *Admin) DiscardMessage(ctx context.Context, ref transitions.MessageRef, by, reason string) (inspect.DeadMessage, error) {
	by, err := operator(by, reason)
	if err != nil {
		return inspect.DeadMessage{}, err
	}
	if _, err := a.DeadMessage(ctx, ref); err != nil {
		return inspect.DeadMessage{}, err
	}
	ref.Tenant = tenantOr(ref.Tenant)
	now := a.e.clock.Now()
	if err := a.e.inbox.Discard(ctx, ref, by, reason, now, now.Add(a.e.config.Replay)); err != nil {
		return inspect.DeadMessage{}, err
	}
	d, err := a.DeadMessage(ctx, ref)
	d.Body = nil
	return d, err
}

// ForgetMessages deletes up to limit messages from the list that were retried or
// discarded before a time, and returns how many. Those that wait stay.
func (a *Admin) ForgetMessages(ctx context.Context, before time.Time, limit int) (int64, error) {
	return a.e.inbox.Forget(ctx, before, limit)
}

// KeptMessages lists messages that were stored as received, without headers and bodies, ordered by consumer and time of receipt. It
// reports whether there are more.
//
// Errors: InvalidRequest, Unavailable.
func (a *Admin) KeptMessages(ctx context.Context, f inspect.KeptMessageFilter) (list []inspect.KeptMessage, more bool, err error) {
	f.Tenant, f.Limit = tenantOr(f.Tenant), pageSize(f.Limit)
	if err := transitions.CheckTenant(f.Tenant); err != nil {
		return nil, false, err
	}
	if f.ID != "" && f.Consumer == "" {
		return nil, false, workflow.Errorf(workflow.InvalidRequest, "the id of a message needs its consumer")
	}
	if err := cmp.Or(checkText("consumer", f.Consumer, transitions.MaxConsumer),
		checkText("id of the message", f.ID, transitions.MaxKey)); err != nil {
		return nil, false, err
	}
	return a.e.inbox.ListKept(ctx, f, a.e.clock.Now())
}

// KeptMessage reads a message with its headers and its body. Errors: NotFound, Unavailable.
func (a *Admin) KeptMessage(ctx context.Context, r transitions.MessageRef) (inspect.KeptMessage, error) {
	r.Tenant = tenantOr(r.Tenant)
	if (transitions.Message{Tenant: r.Tenant, Consumer: r.Consumer, ID: r.ID}).Check() != nil { // PostgreSQL cannot read such text
		return inspect.KeptMessage{}, workflow.Errorf(workflow.NotFound, "no such message is kept")
	}
	return a.e.inbox.Kept(ctx, r, a.e.clock.Now())
}
