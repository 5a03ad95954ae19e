package api

import (
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// instances lists instances: GET /v1/instances.
func (a *API) instances(w http.ResponseWriter, r *http.Request, c Caller) error {
	filter, err := filterOf(r, c.Tenant)
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

func filterOf(r *http.Request, tenant string) (inspect.Filter, error) {
	f := inspect.Filter{Tenant: tenant}
	q, err := filtersOf(r, "workflow", "definition", "state*", "open", "business_key", "created_after", "created_before",
		"updated_after", "updated_before", "order", "limit", "cursor", attributePrefix)
	if err != nil {
		return f, err
	}
	f.Workflow, f.BusinessKey = q["workflow"], q["business_key"]
	if f.BusinessKey != "" && f.Workflow == "" {
		return f, workflow.Errorf(workflow.InvalidRequest, "a business key needs its workflow: add the query parameter \"workflow\"")
	}
	f.Attributes = q.attributes()
	if f.Definition, err = q.definition(); err != nil {
		return f, err
	}
	if f.States, err = statesOf(r); err != nil {
		return f, err
	}
	if f.Open, err = q.choice("open"); err != nil {
		return f, err
	}
	for name, t := range map[string]*time.Time{"created_after": &f.CreatedAfter, "created_before": &f.CreatedBefore,
		"updated_after": &f.UpdatedAfter, "updated_before": &f.UpdatedBefore} {
		if *t, err = q.time(name); err != nil {
			return f, err
		}
	}
	if f.Order, err = q.order(); err != nil {
		return f, err
	}
	if f.Limit, err = q.limit(); err != nil {
		return f, err
	}
	if cursor, given := q["cursor"]; given {
		f.After, err = decodePlace(f.Order, cursor)
	}
	return f, err
}

// order returns the order of a list of instances.
func (q query) order() (inspect.Order, error) {
	switch q["order"] {
	case "", "id":
		return inspect.ByID, nil
	case "updated":
		return inspect.ByUpdate, nil
	}
	return 0, workflow.Errorf(workflow.InvalidRequest, "query parameter \"order\" is neither id nor updated")
}

// maxStates is how many states a list may be asked for.
const maxStates = 100

// statesOf returns the states of the query, any of which is selected.
func statesOf(r *http.Request) (list []workflow.State, err error) {
	names := given(r.URL.Query()["state"])
	if len(names) > maxStates {
		return nil, workflow.Errorf(workflow.InvalidRequest, "query parameter \"state\" is given %d times; %d are the most",
			len(names), maxStates)
	}
	for _, name := range names {
		state := workflow.State(name)
		if state == "" || slices.Contains(list, state) {
			return nil, workflow.Errorf(workflow.InvalidRequest, "query parameter \"state\" is given several times, and %q is empty or there twice",
				shown(name))
		}
		list = append(list, state)
	}
	return list, nil
}

// instance shows one: GET /v1/instances/{id}, as it is or as it was.
func (a *API) instance(w http.ResponseWriter, r *http.Request, c Caller) error {
	id, err := pathID(r)
	if err != nil {
		return err
	}
	then, err := momentOf(r)
	if err != nil {
		return err
	}
	if then.past {
		return a.sendPast(w, r, c, id, then)
	}
	v, err := a.engine.View(r.Context(), c.Tenant, id)
	if err != nil {
		return err
	}
	return sendView(w, r, &v)
}

// instanceByKey shows the one that has a business key:
// GET /v1/workflows/{workflow}/keys/{business_key}.
func (a *API) instanceByKey(w http.ResponseWriter, r *http.Request, c Caller) error {
	name, err := pathText(r, "workflow")
	if err != nil {
		return err
	}
	key, err := pathText(r, "business_key")
	if err != nil {
		return err
	}
	then, err := momentOf(r)
	if err != nil {
		return err
	}
	if then.past {
		id, err := a.addressed(r, c)
		if err != nil {
			return err
		}
		return a.sendPast(w, r, c, id, then)
	}
	v, err := a.engine.ViewByKey(r.Context(), c.Tenant, name, key)
	if err != nil {
		return err
	}
	return sendView(w, r, &v)
}

// addressed returns the instance that the path names, by its id or by the
// business key of a workflow.
func (a *API) addressed(r *http.Request, c Caller) (uuid.UUID, error) {
	if r.PathValue("id") != "" {
		return pathID(r)
	}
	name, err := pathText(r, "workflow")
	if err != nil {
		return uuid.Nil, err
	}
	if _, err := a.engine.Workflow(name, 0); err != nil {
		return uuid.Nil, err
	}
	key, err := pathText(r, "business_key")
	return transitions.InstanceID(c.Tenant, name, key), err
}

// history shows what happened to an instance: GET /v1/instances/{id}/history.
func (a *API) history(w http.ResponseWriter, r *http.Request, c Caller) error {
	id, err := a.addressed(r, c)
	if err != nil {
		return err
	}
	q, err := filtersOf(r, "after", "limit")
	if err != nil {
		return err
	}
	after, err := q.integer("after", 0, 0, maxPosition)
	if err != nil {
		return err
	}
	limit, err := q.limit()
	if err != nil {
		return err
	}
	entries, err := a.engine.History(r.Context(), c.Tenant, id, after, limit)
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
func (a *API) options(w http.ResponseWriter, r *http.Request, c Caller) error {
	id, err := a.addressed(r, c)
	if err != nil {
		return err
	}
	if _, err := queryOf(r); err != nil {
		return err
	}
	found, err := a.engine.Explain(r.Context(), c.Tenant, id, c.Actor, c.Roles)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, Options{Instance: id, Explanation: found})
}
