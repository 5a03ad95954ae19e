package api

import (
	"net/http"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

// stuck lists the commands that wait for a person: GET /v1/ops/stuck.
func (a *API) stuck(w http.ResponseWriter, r *http.Request, c Caller) error {
	q, err := filtersOf(r, "workflow", "business_key", "instance", "limit", "cursor")
	if err != nil {
		return err
	}
	f := inspect.StuckFilter{Tenant: c.Tenant, Workflow: q["workflow"], BusinessKey: q["business_key"]}
	if f.Instance, err = q.instance(); err != nil {
		return err
	}
	if f.Limit, err = q.limit(); err != nil {
		return err
	}
	if cursor, given := q["cursor"]; given {
		if f.After, err = decodeStuckCursor(cursor); err != nil {
			return err
		}
	}
	list, more, err := a.engine.Stuck(r.Context(), f)
	if err != nil {
		return err
	}
	out := StuckPage{Commands: make([]CommandStatus, len(list))}
	for i := range list {
		s, r := &out.Commands[i], &list[i]
		*s = statusOf(r)
		s.BusinessKey, s.Undo, s.Effect = r.BusinessKey, r.Phase == transitions.Undoing, r.Effect(c.Tenant)
	}
	if n := len(list); more && n > 0 {
		out.Next = encodeStuckCursor(&list[n-1])
	}
	return sendJSON(w, http.StatusOK, out)
}

// paused lists the workflows of which nothing new is begun: GET /v1/ops/paused.
func (a *API) paused(w http.ResponseWriter, r *http.Request, c Caller) error {
	if _, err := queryOf(r); err != nil {
		return err
	}
	list, err := a.engine.PausedWorkflows(r.Context(), c.Tenant)
	if err != nil {
		return err
	}
	if list == nil {
		list = []inspect.PausedWorkflow{}
	}
	return sendJSON(w, http.StatusOK, PausedList{Workflows: list})
}

// pauseWorkflow lets a workflow begin nothing new:
// PUT /v1/ops/paused/{workflow}.
func (a *API) pauseWorkflow(w http.ResponseWriter, r *http.Request, c Caller) error {
	name, err := pausedName(r)
	if err != nil {
		return err
	}
	in, err := readJSON[Reason](w, r, maxOperation)
	if err != nil {
		return err
	}
	if err := a.engine.PauseWorkflow(r.Context(), c.Tenant, name, c.Actor, in.Reason); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// resumeWorkflow is the end of that: DELETE /v1/ops/paused/{workflow}.
func (a *API) resumeWorkflow(w http.ResponseWriter, r *http.Request, c Caller) error {
	name, err := pausedName(r)
	if err != nil {
		return err
	}
	if err := a.engine.ResumeWorkflow(r.Context(), c.Tenant, name); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func pausedName(r *http.Request) (string, error) {
	if _, err := queryOf(r); err != nil {
		return "", err
	}
	if err := unwanted(r, ofCommands...); err != nil {
		return "", err
	}
	return pathText(r, "workflow")
}
