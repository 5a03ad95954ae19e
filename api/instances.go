package api

import (
	"encoding/hex"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// instances lists instances: GET /v1/instances.
func (a *API) instances(w http.ResponseWriter, r *request) error {
	filter, err := filterOf(r)
	if err != nil {
		return err
	}
	page, err := a.engine.Instances(r.Context(), filter)
	if err != nil {
		return err
	}
	out := InstancePage{Instances: make([]Instance, len(page.Instances))}
	for i := range page.Instances {
		out.Instances[i] = instanceOf(&page.Instances[i])
	}
	if page.More {
		out.Next = encodePlace(filter.Order, page.Next)
	}
	return sendJSON(w, http.StatusOK, out)
}

func filterOf(r *request) (inspect.Filter, error) {
	f := inspect.Filter{Tenant: r.tenant(), Workflow: r.text("workflow"), BusinessKey: r.text("business_key"), Attributes: r.attributes(),
		Definition: int(r.integer("definition")), States: r.states(), Open: r.choice("open"), Limit: r.limit()}
	if f.BusinessKey != "" && f.Workflow == "" {
		return f, workflow.Errorf(workflow.InvalidRequest, "a business key needs its workflow: add the query parameter \"workflow\"")
	}
	for name, t := range map[string]*time.Time{"created_after": &f.CreatedAfter, "created_before": &f.CreatedBefore,
		"updated_after": &f.UpdatedAfter, "updated_before": &f.UpdatedBefore} {
		if *t = r.time(name); r.given(name) && t.IsZero() {
			return f, errNoTime(name) // it would mean that none is given
		}
	}
	if r.text("order") == "updated" {
		f.Order = inspect.ByUpdate
	}
	var err error
	f.After, err = after(r, func(s string) (inspect.Place, error) { return decodePlace(f.Order, s) })
	return f, err
}

// states are the states of the query, any of which is selected.
func (r *request) states() (list []workflow.State) {
	for _, name := range r.texts("state") {
		list = append(list, workflow.State(name))
	}
	return list
}

// instance shows one, as it is or as it was: GET /v1/instances/{id}, or by its
// business key.
func (a *API) instance(w http.ResponseWriter, r *request) error {
	if r.given("version") || r.given("at") {
		return a.instanceThen(w, r)
	}
	var v inspect.View
	var err error
	if r.byKey() {
		v, err = a.engine.ViewByKey(r.Context(), r.tenant(), r.text("workflow"), r.text("business_key"))
	} else {
		v, err = a.engine.View(r.Context(), r.tenant(), r.id("id"))
	}
	if err != nil {
		return err
	}
	return sendView(w, r.with(headerNoneMatch), &v)
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
	if _, err := a.engine.Workflow(name, 0); err != nil {
		return uuid.Nil, err
	}
	return transitions.InstanceID(r.tenant(), name, r.text("business_key")), nil
}

// history shows what happened to an instance: GET /v1/instances/{id}/history.
func (a *API) history(w http.ResponseWriter, r *request) error {
	id, err := a.addressed(r)
	if err != nil {
		return err
	}
	limit := r.limit()
	entries, err := a.engine.History(r.Context(), r.tenant(), id, r.integer("after"), limit)
	if err != nil {
		return err
	}
	out := History{Instance: id, Entries: make([]Entry, len(entries))}
	for i := range entries {
		out.Entries[i] = entryOf(&entries[i])
	}
	if n := len(entries); n == limit {
		out.NextAfter = entries[n-1].Version
	}
	return sendJSON(w, http.StatusOK, out)
}

func entryOf(e *transitions.Entry) Entry {
	cause, by := transitions.CauseOf(e.Cause, e.Scope, e.Key)
	return Entry{
		Version: e.Version, Position: e.Position, Transition: e.Transition, From: e.From, To: e.To,
		Actor: e.Actor, Reason: e.Reason, Payload: raw(e.Payload), Data: raw(e.Data),
		Scope: e.Scope, Key: e.Key, Cause: cause, CausedBy: by, At: e.At.UTC(), Hash: hex.EncodeToString(e.Hash[:]),
	}
}

// options shows what the caller can do with an instance now, and why not:
// GET /v1/instances/{id}/transitions.
func (a *API) options(w http.ResponseWriter, r *request) error {
	id, err := a.addressed(r)
	if err != nil {
		return err
	}
	found, err := a.engine.Explain(r.Context(), r.tenant(), id, r.caller.Actor, r.caller.Roles)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, Options{Instance: id, Explanation: found})
}
