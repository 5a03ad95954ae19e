package engine

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/definitions"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Admin serves operators: stuck work, paused workflows, dead letters, sinks, migrations, versions, retention, verification and
// statistics. It also has the methods of Reader.
type Admin struct{ Reader }

// Admin returns the operators' methods of the engine.
func (e *Engine) Admin() *Admin { return &Admin{Reader{e}} }

// Reader answers queries about instances, commands, workflows and the log. Its methods read committed state and write nothing.
type Reader struct{ e *Engine }

// Read returns the query methods of the engine.
func (e *Engine) Read() *Reader { return &Reader{e} }

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

// checkText refuses a text that cannot be stored.
func checkText(what, text string, limit int) error {
	if problem := transitions.TextProblem(text, limit); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the %s %s", what, problem)
	}
	return nil
}

// checkWorkflow refuses an invalid tenant, and an unknown workflow unless it is "".
func (e *Engine) checkWorkflow(tenant, name string) error {
	if err := transitions.CheckTenant(tenant); err != nil {
		return err
	}
	if name != "" && e.registry.Find(name, 0) == nil {
		return definitions.NotFound(name)
	}
	return nil
}

func tenantOr(tenant string) string { return transitions.Command{Tenant: tenant}.WithDefaults().Tenant }

// Instance reads an instance. Error: InstanceNotFound.
func (r *Reader) Instance(ctx context.Context, tenant string, id uuid.UUID) (transitions.Instance, error) {
	return r.e.reader.Instance(ctx, tenantOr(tenant), id)
}

// InstanceByKey reads the instance that a business key names. Errors: WorkflowNotFound, InstanceNotFound.
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

// Explain says what the actor can do with the instance now, and why not, and what of it waits for an operator. Errors: InstanceNotFound;
// NotOnThisNode where this node does not have the version of its workflow.
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

// Command reads what is stored under a key. Errors: CommandNotFound, and KeyExpired past the key's retention time.
func (r *Reader) Command(ctx context.Context, ref transitions.Ref) (transitions.Record, error) {
	ref.Tenant = tenantOr(ref.Tenant)
	record, err := r.e.reader.Record(ctx, nil, ref)
	if err == nil && decide.Classify(&record, record.Fingerprint, r.e.clock.Now()) == decide.KeyGone {
		_, err = decide.KeyGone.Answer(&record)
	}
	return record, err
}

// Verify checks the audit chain of an instance, or of all instances of the tenant and its log for the zero id.
func (a *Admin) Verify(ctx context.Context, tenant string, id uuid.UUID) (inspect.Verification, error) {
	return a.VerifyWithProgress(ctx, tenant, id, nil)
}

// VerifyWithProgress is Verify, and calls progress now and then with the number of rows checked so far.
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

// View reads an instance with its timers, with what is scheduled on it, with what
// of it is stuck, and with its parent. Error: InstanceNotFound.
func (r *Reader) View(ctx context.Context, tenant string, id uuid.UUID) (inspect.View, error) {
	v, err := r.e.reader.View(ctx, tenantOr(tenant), id)
	if p := v.Links.Parent; p != nil && err == nil {
		v.Parent = &inspect.Parent{Workflow: p.Workflow, Instance: p.Instance, End: p.End}
		v.Parent.BusinessKey, err = r.e.reader.BusinessKeyOf(ctx, tenantOr(tenant), p.Instance)
	}
	return v, err
}

// ViewByKey is View of the instance that a business key names. Errors: WorkflowNotFound, InstanceNotFound.
func (r *Reader) ViewByKey(ctx context.Context, tenant, workflowName, businessKey string) (inspect.View, error) {
	id, err := r.e.named(tenant, workflowName, businessKey)
	if err != nil {
		return inspect.View{}, err
	}
	v, err := r.View(ctx, tenant, id)
	return v, ofKey(&v.Instance, workflowName, businessKey, err)
}

// Children lists the instances that another instance started, in that order, in their current state. The cost of a page is bounded, so a
// page may have fewer than Limit children although more exist; Page.More reports that.
//
// Errors: InstanceNotFound, InvalidRequest, Unavailable.
func (r *Reader) Children(ctx context.Context, f inspect.ChildFilter) (inspect.ChildPage, error) {
	f.Tenant, f.Limit = tenantOr(f.Tenant), pageSize(f.Limit)
	if err := f.Check(); err != nil {
		return inspect.ChildPage{}, err
	}
	parent, err := r.e.reader.Instance(ctx, f.Tenant, f.Parent)
	if err != nil {
		return inspect.ChildPage{}, err
	}
	page, err := r.e.reader.Children(ctx, &parent, &f)
	for i := range page.Children {
		c := &page.Children[i]
		c.Deferred = slices.ContainsFunc(parent.Links.Deferred, func(d transitions.Completion) bool { return d.Child == c.ID })
	}
	return page, err
}

// Watch follows a command on whatever node it is worked on: this node's changes are seen at once, those of others within moments, and
// within a second where notifications are lost (more where this node watches more than 8,000 commands). The records have no Request. The
// Watcher must be closed.
func (r *Reader) Watch(ref transitions.Ref) transitions.Watcher {
	ref.Tenant = tenantOr(ref.Tenant)
	if err := store.CheckRef(ref); err != nil {
		return nothing{err}
	}
	return r.e.watch.Watch(ref)
}

// nothing is the Watcher of a command that cannot be.
type nothing struct{ err error }

func (n nothing) Next(context.Context) (transitions.Record, error) {
	return transitions.Record{}, n.err
}
func (n nothing) Close() {}

// Await waits for the end of a command and returns its final answer, wherever it
// was worked on, as Submit would answer a duplicate of it: Replayed.
//
// Errors: CommandNotFound, KeyExpired, ShuttingDown, and TimedOut when ctx ends before the command does.
func (e *Engine) Await(ctx context.Context, ref transitions.Ref) (transitions.Receipt, error) {
	ref.Tenant = tenantOr(ref.Tenant)
	if err := store.CheckRef(ref); err != nil {
		return transitions.Receipt{}, err
	}
	return e.watch.Await(ctx, ref)
}
