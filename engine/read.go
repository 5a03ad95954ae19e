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
func (r *Reader) Instance(ctx context.Context, tenant string, id uuid.UUID) (transitions.Instance, error) {
	return r.e.reader.Instance(ctx, tenantOr(tenant), id)
}

// InstanceByKey reads the instance that a business key names. Errors:
// WorkflowNotFound, InstanceNotFound.
func (r *Reader) InstanceByKey(ctx context.Context, tenant, workflowName, businessKey string) (transitions.Instance, error) {
	id, err := r.e.named(tenant, workflowName, businessKey)
	if err != nil {
		return transitions.Instance{}, err
	}
	inst, err := r.Instance(ctx, tenant, id)
	return inst, ofKey(&inst, workflowName, businessKey, err)
}

// named is the id that a business key makes. Error: WorkflowNotFound.
func (e *Engine) named(tenant, workflowName, businessKey string) (uuid.UUID, error) {
	if _, err := e.Read().Workflow(workflowName, 0); err != nil {
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

// Instances lists instances. A filter by business key requires the workflow, whose name must exist. The cost of a page is bounded, so a
// page may have fewer than Limit instances although more exist; Page.More reports that. Errors: InvalidRequest, WorkflowNotFound.
func (r *Reader) Instances(ctx context.Context, f inspect.Filter) (inspect.Page, error) {
	f.Tenant = tenantOr(f.Tenant)
	f.Limit = pageSize(f.Limit)
	if f.Workflow != "" {
		if _, err := r.Workflow(f.Workflow, 0); err != nil {
			return inspect.Page{}, err
		}
	}
	if err := f.Check(r.Versions(f.Workflow)); err != nil {
		return inspect.Page{}, err
	}
	return r.e.reader.Instances(ctx, &f)
}

// History reads the audit rows of an instance after a version, oldest first. There are fewer than limit, although there are more, where
// they have [transitions.PageBytes]; see [transitions.PageFull]. Error: InstanceNotFound.
func (r *Reader) History(ctx context.Context, tenant string, id uuid.UUID, after int64, limit int) ([]transitions.Entry, error) {
	tenant = tenantOr(tenant)
	entries, err := r.e.audit.History(ctx, tenant, id, after, pageSize(limit))
	if err != nil {
		return nil, store.ReadError("history", err)
	}
	if len(entries) == 0 {
		if _, err := r.e.reader.WorkflowOf(ctx, nil, tenant, id); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// Explain says what the actor can do with the instance now, and why not, and what of
// it waits for an operator. Errors: InstanceNotFound; NotOnThisNode where this
// node does not have the version of its workflow.
func (r *Reader) Explain(ctx context.Context, tenant string, id uuid.UUID, actor string, roles []string) (inspect.Explanation, error) {
	v, err := r.View(ctx, tenant, id)
	if err != nil {
		return inspect.Explanation{}, err
	}
	w, err := r.Workflow(v.Workflow, v.Definition)
	if err != nil {
		return inspect.Explanation{}, err
	}
	x := inspect.Explanation{Transitions: decide.Explain(w, &v.Instance, actor, roles, r.e.clock.Now())}
	x.Blocked(&v)
	return x, nil
}

// Command reads what is stored under a key. Errors: CommandNotFound, and
// KeyExpired past the key's retention time.
func (r *Reader) Command(ctx context.Context, ref transitions.Ref) (transitions.Record, error) {
	ref.Tenant = tenantOr(ref.Tenant)
	record, err := r.e.reader.Record(ctx, nil, ref)
	if err == nil && decide.Classify(&record, record.Fingerprint, r.e.clock.Now()) == decide.KeyGone {
		_, err = decide.KeyGone.Answer(&record)
	}
	return record, err
}

// Verify checks the audit chain of an instance, or of all instances of the
// tenant and its log for the zero id.
func (a *Admin) Verify(ctx context.Context, tenant string, id uuid.UUID) (inspect.Verification, error) {
	return a.VerifyWithProgress(ctx, tenant, id, nil)
}

// VerifyWithProgress is Verify, and calls progress now and then with the number
// of rows checked so far.
func (a *Admin) VerifyWithProgress(ctx context.Context, tenant string, id uuid.UUID, progress func(entries int64)) (
	inspect.Verification, error,
) {
	tenant = tenantOr(tenant)
	if id != uuid.Nil {
		if _, err := a.e.reader.WorkflowOf(ctx, nil, tenant, id); err != nil {
			return inspect.Verification{}, err
		}
	}
	v, err := a.e.verify.Verify(ctx, tenant, id, progress)
	if err != nil {
		return v, store.ReadError("audit", err)
	}
	return v, nil
}

// Readable reports whether the tenant's log can be read after a position. Errors:
// EventsGone where retention has removed what comes next, Unavailable.
func (r *Reader) Readable(ctx context.Context, tenant string, after int64) error {
	err := r.e.feed.Readable(ctx, tenantOr(tenant), after)
	if err == nil || workflow.CodeOf(err) == workflow.EventsGone {
		return err
	}
	return store.ReadError("log", err)
}

// Head is the position of the tenant's newest transition, 0 for none.
func (r *Reader) Head(ctx context.Context, tenant string) (int64, error) {
	head, err := r.e.feed.Head(ctx, tenantOr(tenant))
	if err != nil {
		return 0, store.ReadError("log", err)
	}
	return head, nil
}

// Follow reads the tenant's log after a position. The Follower must be closed.
func (r *Reader) Follow(tenant string, after int64) transitions.Follower {
	return r.e.feed.Follow(tenantOr(tenant), after)
}
