package api

import (
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// instances lists instances.
func (a *API) instances(r *request) (wire.InstancePage, error) {
	filter, list, err := filterOf(r)
	if err != nil {
		return wire.InstancePage{}, err
	}
	page, err := a.engine.Read().Instances(r.Context(), filter)
	out := wire.InstancePage{Instances: each(page.Instances, instanceOf)}
	if page.More {
		out.Next = list.encode(&page.Next)
	}
	return out, err
}

func filterOf(r *request) (inspect.Filter, *cursor[inspect.Place], error) {
	list := &byCreation
	f := inspect.Filter{Tenant: r.tenant(), Workflow: r.text("workflow"), BusinessKey: r.text("business_key"),
		Definition: int(r.integer("definition")), States: r.states(), Open: r.choice("open"), Limit: r.limit()}
	f.Attributes, f.Ranges = r.attributes(), map[string]inspect.Range{}
	for name, value := range f.Attributes { // those with a suffix are ranges
		attribute, kind, isRange := strings.Cut(name, ".")
		of := f.Ranges[attribute]
		switch "." + kind {
		case suffixFrom:
			of.From = value
		case suffixBefore:
			of.Before = value
		case suffixPrefix:
			of.Prefix = value
		default:
			isRange = false
		}
		if isRange {
			f.Ranges[attribute] = of
			delete(f.Attributes, name)
		}
	}
	for name, t := range map[string]*time.Time{"created_after": &f.CreatedAfter, "created_before": &f.CreatedBefore,
		"updated_after": &f.UpdatedAfter, "updated_before": &f.UpdatedBefore} {
		if *t = r.time(name); r.given(name) && t.IsZero() { // it would mean that none is given
			return f, nil, workflow.Errorf(workflow.InvalidRequest, "query parameter %q %s", name, noTime)
		}
	}
	if r.text("order") == "updated" {
		f.Order, list = inspect.ByUpdate, &byUpdate
	}
	var err error
	f.After, err = list.after(r)
	return f, list, err
}

// states are the states of the query, any of which is selected.
func (r *request) states() (list []workflow.State) {
	for _, name := range r.texts("state") {
		list = append(list, workflow.State(name))
	}
	return list
}

// instance shows one, as it is or as it was.
func (a *API) instance(w http.ResponseWriter, r *request) error {
	if r.given("version") || r.given("at") {
		return show((*API).instanceThen)(a, w, r)
	}
	var v inspect.View
	var err error
	if r.byKey() {
		v, err = a.engine.Read().ViewByKey(r.Context(), r.tenant(), r.text("workflow"), r.text("business_key"))
	} else {
		v, err = a.engine.Read().View(r.Context(), r.tenant(), r.id("id"))
	}
	if err != nil {
		return err
	}
	if p := v.Parent; p != nil && !mayRead(&r.caller, p.Workflow, p.Instance, p.BusinessKey) {
		p.BusinessKey = ""
	}
	hideChildren(&r.caller, Read, &v)
	body, err := render(viewOf(&v))
	if err != nil {
		return err
	}
	sendTagged(w, r.with(headerNoneMatch), `"`+strconv.FormatInt(v.Version, 10)+"."+hashOf(r.tenant(), string(body))+`"`, body)
	return nil
}

// byKey reports whether the path names an instance by its business key.
func (r *request) byKey() bool { return r.route.param("id") == nil }

// addressed returns the instance that the path names, by its id or by the
// business key of a workflow.
func (a *API) addressed(r *request) (uuid.UUID, error) {
	if !r.byKey() {
		return r.id("id"), nil
	}
	name := r.text("workflow")
	if _, err := a.engine.Read().Workflow(name, 0); err != nil {
		return uuid.Nil, err
	}
	r.named = true
	return transitions.InstanceID(r.tenant(), name, r.text("business_key")), nil
}

// asNamed returns err, which names an instance that is not there by its id, with the business key by which the caller named it.
func (r *request) asNamed(err error) error {
	if !r.named || workflow.CodeOf(err) != workflow.InstanceNotFound || errors.Is(err, inspect.ErrNotThen) {
		return err
	}
	return transitions.UnknownBusinessKey(r.text("workflow"), r.text("business_key"))
}

// instanceThen answers with a past state of an instance. It has no ETag: the answer changes only when the data is erased, and then caches
// should not keep it.
func (a *API) instanceThen(r *request) (wire.PastInstance, error) {
	if r.given("version") && r.given("at") {
		return wire.PastInstance{}, workflow.Errorf(workflow.InvalidRequest, "the past is asked for by version or by time, not by both")
	}
	id, err := a.addressed(r)
	if err != nil {
		return wire.PastInstance{}, err
	}
	var then inspect.Past
	if r.given("version") {
		then, err = a.engine.Read().InstanceAt(r.Context(), r.tenant(), id, r.integer("version"))
	} else {
		then, err = a.engine.Read().InstanceAsOf(r.Context(), r.tenant(), id, r.time("at"))
	}
	return wire.PastInstance{
		ID: then.ID, Workflow: then.Workflow, Definition: then.Definition, BusinessKey: then.BusinessKey, State: then.State, Open: then.Open,
		Version: then.Version, Newest: then.Newest, Data: raw(then.Data), Erased: then.Erased, CreatedAt: then.CreatedAt,
		UpdatedAt: then.UpdatedAt,
	}, err
}

// history shows what happened to an instance.
func (a *API) history(r *request) (wire.History, error) {
	id, err := a.addressed(r)
	if err != nil {
		return wire.History{}, err
	}
	entries, err := a.engine.Read().History(r.Context(), r.tenant(), id, r.integer("after"), r.limit())
	out := wire.History{Instance: id, Entries: each(entries, entryOf)}
	if n := len(entries); n > 0 && transitions.PageFull(entries, r.limit()) {
		out.NextAfter = entries[n-1].Version
	}
	return out, err
}

func entryOf(e *transitions.Entry) wire.Entry {
	cause, by := transitions.CauseOf(e.Cause, e.Scope, e.Key)
	automatic, _ := e.Cause.Automatic()
	return wire.Entry{
		Version: e.Version, Position: e.Position, Transition: e.Transition, From: e.From, To: e.To,
		Actor: e.Actor, Proof: e.Proof, Reason: e.Reason, Payload: raw(e.Payload), Data: raw(e.Data),
		Scope: e.Scope, Key: e.Key, Cause: cause, CausedBy: by, Automatic: automatic, At: e.At.UTC(), Hash: hex.EncodeToString(e.Hash[:]),
	}
}

// options shows what the caller can do with an instance now, and why not.
func (a *API) options(r *request) (wire.Options, error) {
	id, err := a.addressed(r)
	if err != nil {
		return wire.Options{}, err
	}
	found, err := a.engine.Read().Explain(r.Context(), r.tenant(), id, r.caller.Actor, r.caller.Roles)
	return wire.Options{Instance: id, Stuck: stuckOf(found.Stuck), Transitions: each(found.Transitions, func(o *inspect.Option) wire.Option {
		return wire.Option{Transition: o.Transition, Allowed: o.Allowed, To: o.To,
			Reasons: each(o.Reasons, func(r *inspect.Reason) wire.WhyNot { return wire.WhyNot(*r) })}
	})}, err
}

// whole shows all of one instance, to an operator.
func (a *API) whole(r *request) (Case, error) {
	id, err := a.addressed(r)
	if err != nil {
		return Case{}, err
	}
	found, err := a.engine.Read().Case(r.Context(), r.tenant(), id)
	hideChildren(&r.caller, Operate, &found.View)
	return Case{Instance: viewOf(&found.View), InFlight: each(found.InFlight, operatedStatusOf), Earlier: found.Earlier,
		Timeline: each(found.Timeline, entryOf), Chain: found.Chain}, err
}

// counts tells how many instances there are of each workflow, version and state.
func (a *API) counts(r *request) (inspect.Counts, error) {
	counts, err := a.engine.Read().Counts(r.Context(), inspect.CountFilter{Tenant: r.tenant(), Workflow: r.text("workflow"),
		Definition: int(r.integer("definition")), States: r.states(), Open: r.choice("open"), Attributes: r.attributes()})
	return counts, err
}

// children lists the instances that one has started, those that the caller may read.
func (a *API) children(r *request) (out wire.ChildPage, err error) {
	f := inspect.ChildFilter{Tenant: r.tenant(), States: r.states(), Open: r.choice("open"), Stuck: r.choice("stuck"), Limit: r.limit()}
	if f.Parent, err = a.addressed(r); err != nil {
		return out, err
	}
	if f.After, err = byStart.after(r); err != nil {
		return out, err
	}
	page, err := a.engine.Read().Children(r.Context(), f)
	out = wire.ChildPage{Instance: f.Parent, Children: []wire.Child{}}
	for i := range page.Children {
		if c := &page.Children[i]; mayRead(&r.caller, c.Workflow, c.ID, c.BusinessKey) {
			child := wire.Child{Instance: instanceOf(&c.Instance), Stuck: c.Stuck, Deferred: c.Deferred}
			if c.Links.Parent != nil {
				child.End = c.Links.Parent.End
			}
			out.Children = append(out.Children, child)
		}
	}
	if page.More {
		out.Next = byStart.encode(&page.Next)
	}
	return out, err
}

// hideChildren removes the problems of children for which the caller lacks the grant.
func hideChildren(c *Caller, g Grant, v *inspect.View) {
	v.StuckChildren = slices.DeleteFunc(v.StuckChildren, func(s inspect.StuckChild) bool {
		return !c.May(g, auth.Target{Workflow: s.Workflow, Instance: s.Instance, BusinessKey: s.BusinessKey})
	})
}

// mayRead reports whether a caller may read an instance of which all of this is known.
func mayRead(c *Caller, workflow string, id uuid.UUID, businessKey string) bool {
	return c.May(Read, auth.Target{Workflow: workflow, Instance: id, BusinessKey: businessKey})
}
