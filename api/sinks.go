package api

import (
	"context"
	"slices"

	"github.com/pawlhq/pawl/api/internal/parse"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

// A sink belongs to the installation, and may receive the events of many tenants. An operator of a tenant sees the sinks that receive this
// tenant's events, with the numbers of its log and its dead letters, and may move its cursor and redrive and skip its dead letters.
// Operations for all tenants (?all_tenants=true, pausing, removing) require [OperatorOfAll]. All of them are idempotent, so none needs a
// key.

// SinkMove is where an operator moves a sink's cursor.
type SinkMove struct {
	Position *int64 `json:"position"` // required
	Reason   string `json:"reason,omitempty"`
}

// sinks lists the sinks.
func (a *API) sinks(r *request) (SinkList, error) {
	list, err := a.sinksOf(r, r.tenant())
	return SinkList{Sinks: list}, err
}

// sink tells how a sink stands, and how far it is.
func (a *API) sink(r *request) (out SinkPage, err error) {
	last, err := byTenant.after(r)
	if err != nil {
		return out, err
	}
	info, err := a.sinkOf(r, r.tenant())
	if err != nil {
		return out, err
	}
	list, more, err := a.engine.Admin().SinkCursors(r.Context(),
		inspect.CursorFilter{Sink: info.Name, Tenant: r.tenant(), After: last.Tenant, Limit: r.limit()})
	return SinkPage{Sink: info, Cursors: list, Next: byTenant.next(list, more)}, err
}

// deadLetters lists what a sink has not got.
func (a *API) deadLetters(r *request) (out DeadPage, err error) {
	p := inspect.DeadPage{Limit: r.limit()}
	if p.After, err = byDead.after(r); err != nil {
		return out, err
	}
	info, err := a.sinkOf(r, r.tenant())
	if err != nil {
		return out, err
	}
	list, more, err := a.engine.Admin().DeadLetters(r.Context(), inspect.DeadFilter{Sink: info.Name, Tenant: r.tenant(),
		Status: inspect.DeadStatus(r.text("status")), Workflow: r.text("workflow"), Type: r.text("type"), Instance: r.id("instance"),
		BusinessKey: r.text("business_key")}, p)
	return DeadPage{Dead: list, Next: byDead.next(list, more)}, err
}

func (a *API) pauseSink(r *request, in Reason) error {
	return a.engine.Admin().PauseSink(r.Context(), r.text("sink"), r.caller.Actor, in.Reason)
}

func (a *API) resumeSink(r *request, _ Reason) error {
	return a.engine.Admin().ResumeSink(r.Context(), r.text("sink"))
}

func (a *API) forgetSink(r *request, _ Reason) error {
	return a.engine.Admin().ForgetSink(r.Context(), r.text("sink"))
}

func (a *API) moveSink(r *request, in SinkMove) error {
	if in.Position == nil {
		return workflow.Errorf(workflow.InvalidRequest, "the body has no position to move to")
	}
	info, err := a.sinkOf(r, r.tenant())
	if err != nil {
		return err
	}
	return a.engine.Admin().MoveSink(r.Context(), info.Name, r.tenant(), *in.Position, r.caller.Actor, in.Reason)
}

func (a *API) redrive(r *request, in DeadSelection) (DeadChange, error) {
	return a.changeDead(r, &in, a.engine.Admin().Redrive)
}

func (a *API) skipDead(r *request, in DeadSelection) (DeadChange, error) {
	return a.changeDead(r, &in, a.engine.Admin().SkipDead)
}

// changeDead does something to the dead letters that the body selects.
func (a *API) changeDead(r *request, in *DeadSelection,
	do func(ctx context.Context, f inspect.DeadFilter, by, reason string) (int64, error)) (DeadChange, error) {
	f, err := in.filter(r)
	if err != nil {
		return DeadChange{}, err
	}
	info, err := a.sinkOf(r, f.Tenant)
	if err != nil {
		return DeadChange{}, err
	}
	f.Sink = info.Name
	n, err := do(r.Context(), f, r.caller.Actor, in.Reason)
	return DeadChange{Changed: n}, err
}

// sinkOf finds the sink that the path names, among those that get the tenant's
// events.
func (a *API) sinkOf(r *request, tenant string) (inspect.SinkInfo, error) {
	name := r.text("sink")
	list, err := a.sinksOf(r, tenant)
	if err != nil {
		return inspect.SinkInfo{}, err
	}
	i := slices.IndexFunc(list, func(s inspect.SinkInfo) bool { return s.Name == name })
	if i < 0 {
		return inspect.SinkInfo{}, workflow.Errorf(workflow.NotFound, "there is no sink %q", parse.Shown(name))
	}
	return list[i], nil
}

// sinksOf lists sinks. For an operator of one tenant it omits the other tenants and the totals of their events.
func (a *API) sinksOf(r *request, tenant string) ([]inspect.SinkInfo, error) {
	list, err := a.engine.Admin().Sinks(r.Context(), tenant)
	if err != nil || r.caller.Has(OperateAll) {
		return list, err
	}
	for i := range list {
		s := &list[i]
		if s.Tenants != nil {
			s.Tenants = []string{tenant}
		}
		s.Failure, s.Delivered, s.Failed, s.Parked = "", 0, 0, 0
	}
	return list, nil
}

// DeadSelection is which dead letters an operator redrives or skips: those of a
// workflow, a type, an instance (by its id or its business key), a position, or
// expressly all. What is given must not be empty.
type DeadSelection struct {
	All         bool               `json:"all,omitempty"`    // of the status
	Status      inspect.DeadStatus `json:"status,omitempty"` // "" is waiting
	Workflow    *string            `json:"workflow,omitempty"`
	Type        *string            `json:"type,omitempty"`
	Instance    *string            `json:"instance,omitempty"`
	BusinessKey *string            `json:"business_key,omitempty"` // of the caller's tenant, with workflow
	Position    *int64             `json:"position,omitempty"`     // of the caller's tenant
	Reason      string             `json:"reason,omitempty"`
}

// filter is what is selected. A field that is empty or left out by mistake must not
// select everything.
func (s *DeadSelection) filter(r *request) (f inspect.DeadFilter, err error) {
	if !s.All && s.Workflow == nil && s.Type == nil && s.Instance == nil && s.BusinessKey == nil && s.Position == nil {
		return f, workflow.Errorf(workflow.InvalidRequest,
			`say which: with "workflow", "type", "instance", "business_key" or "position", or "all": true`)
	}
	f = inspect.DeadFilter{Status: s.Status, Tenant: r.tenant()}
	for name, field := range map[string]struct{ from, to *string }{"workflow": {s.Workflow, &f.Workflow}, "type": {s.Type, &f.Type},
		"business_key": {s.BusinessKey, &f.BusinessKey}} {
		if field.from == nil {
			continue
		}
		if *field.to = *field.from; *field.to == "" {
			return f, workflow.Errorf(workflow.InvalidRequest, "the %s is empty", spoken(name))
		}
	}
	if s.Instance != nil {
		if f.Instance, err = parse.ID(*s.Instance); err != nil {
			return f, err
		}
	}
	if s.Position != nil {
		if f.Position = *s.Position; f.Position < 1 {
			return f, workflow.Errorf(workflow.InvalidRequest, "the position is not an integer from 1 on")
		}
	}
	return f, nil
}
