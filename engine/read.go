package engine

import (
	"context"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Limits of a page.
const (
	defaultPage = 100
	maxPage     = 1000
)

func pageSize(limit int) int {
	if limit <= 0 {
		return defaultPage
	}
	return min(limit, maxPage)
}

func tenantOr(tenant string) string { return transitions.Command{Tenant: tenant}.WithDefaults().Tenant }

// Instance reads an instance. Error: InstanceNotFound.
func (e *Engine) Instance(ctx context.Context, tenant string, id uuid.UUID) (transitions.Instance, error) {
	return e.reader.Instance(ctx, tenantOr(tenant), id)
}

// InstanceByKey reads the instance that a business key names. Errors:
// WorkflowNotFound, InstanceNotFound.
func (e *Engine) InstanceByKey(ctx context.Context, tenant, workflowName, businessKey string) (transitions.Instance, error) {
	id, err := e.named(tenant, workflowName, businessKey)
	if err != nil {
		return transitions.Instance{}, err
	}
	inst, err := e.Instance(ctx, tenant, id)
	return inst, ofKey(&inst, workflowName, businessKey, err)
}

// named is the id that a business key makes. Error: WorkflowNotFound.
func (e *Engine) named(tenant, workflowName, businessKey string) (uuid.UUID, error) {
	if _, err := e.Workflow(workflowName, 0); err != nil {
		return uuid.Nil, err
	}
	return transitions.InstanceID(tenantOr(tenant), workflowName, businessKey), nil
}

// ofKey is the error of reading the instance that a business key names.
func ofKey(inst *transitions.Instance, workflowName, businessKey string, err error) error {
	if err == nil && inst.BusinessKey != businessKey || workflow.CodeOf(err) == workflow.InstanceNotFound {
		return transitions.UnknownBusinessKey(workflowName, businessKey)
	}
	return err
}

// Instances lists instances. A filter by business key needs the workflow, and must
// be by a name that exists. What a page costs is bounded, whatever is selected, so
// that one may have fewer than Limit although there are more; Page.More says it.
// Errors: InvalidRequest, WorkflowNotFound.
func (e *Engine) Instances(ctx context.Context, f inspect.Filter) (inspect.Page, error) {
	f.Tenant = tenantOr(f.Tenant)
	f.Limit = pageSize(f.Limit)
	if f.Workflow != "" {
		if _, err := e.Workflow(f.Workflow, 0); err != nil {
			return inspect.Page{}, err
		}
	}
	if err := f.Check(e.Versions(f.Workflow)); err != nil {
		return inspect.Page{}, err
	}
	return e.reader.Instances(ctx, &f)
}

// History reads the audit rows of an instance after a version, oldest first. There are fewer than limit, although there are more, where
// they have [transitions.PageBytes]; see [transitions.PageFull]. Error: InstanceNotFound.
func (e *Engine) History(ctx context.Context, tenant string, id uuid.UUID, after int64, limit int) ([]transitions.Entry, error) {
	tenant = tenantOr(tenant)
	entries, err := e.audit.History(ctx, tenant, id, after, pageSize(limit))
	if err != nil {
		return nil, store.ReadError("history", err)
	}
	if len(entries) == 0 {
		if _, err := e.reader.WorkflowOf(ctx, nil, tenant, id); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// Explain says what the actor can do with the instance now, and why not, and what of
// it waits for an operator. Errors: InstanceNotFound; NotOnThisNode where this
// node does not have the version of its workflow.
func (e *Engine) Explain(ctx context.Context, tenant string, id uuid.UUID, actor string, roles []string) (inspect.Explanation, error) {
	v, err := e.View(ctx, tenant, id)
	if err != nil {
		return inspect.Explanation{}, err
	}
	w, err := e.Workflow(v.Workflow, v.Definition)
	if err != nil {
		return inspect.Explanation{}, err
	}
	x := inspect.Explanation{Transitions: decide.Explain(w, &v.Instance, actor, roles, e.clock.Now())}
	x.Blocked(&v)
	return x, nil
}

// Command reads what is stored under a key. Errors: CommandNotFound, and
// KeyExpired past the key's retention time.
func (e *Engine) Command(ctx context.Context, tenant, scope, key string) (transitions.Record, error) {
	r, err := e.reader.Record(ctx, nil, transitions.Ref{Tenant: tenantOr(tenant), Scope: scope, Key: key})
	if err == nil && decide.Classify(&r, r.Fingerprint, e.clock.Now()) == decide.KeyGone {
		_, err = decide.KeyGone.Answer(&r)
	}
	return r, err
}

// Verify checks the audit chain of an instance, or of all instances of the
// tenant and its log for the zero id.
func (e *Engine) Verify(ctx context.Context, tenant string, id uuid.UUID) (inspect.Verification, error) {
	return e.VerifyWithProgress(ctx, tenant, id, nil)
}

// VerifyWithProgress is Verify, and calls progress now and then with the number
// of rows checked so far.
func (e *Engine) VerifyWithProgress(ctx context.Context, tenant string, id uuid.UUID, progress func(entries int64)) (
	inspect.Verification, error,
) {
	tenant = tenantOr(tenant)
	if id != uuid.Nil {
		if _, err := e.reader.WorkflowOf(ctx, nil, tenant, id); err != nil {
			return inspect.Verification{}, err
		}
	}
	v, err := e.verify.Verify(ctx, tenant, id, progress)
	if err != nil {
		return v, store.ReadError("audit", err)
	}
	return v, nil
}

// Readable reports whether the tenant's log can be read after a position. Errors:
// EventsGone where retention has removed what comes next, Unavailable.
func (e *Engine) Readable(ctx context.Context, tenant string, after int64) error {
	err := e.feed.Readable(ctx, tenantOr(tenant), after)
	if err == nil || workflow.CodeOf(err) == workflow.EventsGone {
		return err
	}
	return store.ReadError("log", err)
}

// Head is the position of the tenant's newest transition, 0 for none.
func (e *Engine) Head(ctx context.Context, tenant string) (int64, error) {
	head, err := e.feed.Head(ctx, tenantOr(tenant))
	if err != nil {
		return 0, store.ReadError("log", err)
	}
	return head, nil
}

// Follow reads the tenant's log after a position. The Follower must be closed.
func (e *Engine) Follow(tenant string, after int64) transitions.Follower {
	return e.feed.Follow(tenantOr(tenant), after)
}
