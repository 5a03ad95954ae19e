package api

import (
	"net/http"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

// stuck lists the commands that wait for a person: GET /v1/ops/stuck.
func (a *API) stuck(w http.ResponseWriter, r *request) error {
	f := inspect.StuckFilter{Tenant: r.tenant(), Workflow: r.text("workflow"), BusinessKey: r.text("business_key"),
		Instance: r.id("instance"), Limit: r.limit()}
	var err error
	if f.After, err = after(r, decodeStuckCursor); err != nil {
		return err
	}
	list, more, err := a.engine.Stuck(r.Context(), f)
	if err != nil {
		return err
	}
	out := StuckPage{Commands: make([]CommandStatus, len(list))}
	for i := range list {
		out.Commands[i] = StuckOf(f.Tenant, &list[i])
	}
	if n := len(list); more && n > 0 {
		out.Next = encodeStuckCursor(&list[n-1])
	}
	return sendJSON(w, http.StatusOK, out)
}

// StuckOf is how REST tells of a stuck command.
func StuckOf(tenant string, r *transitions.Record) CommandStatus {
	s := statusOf(r)
	s.BusinessKey, s.Undo, s.Effect = r.BusinessKey, r.Phase == transitions.Undoing, r.Effect(tenant)
	return s
}

// paused lists the workflows of which nothing new is begun: GET /v1/ops/paused.
func (a *API) paused(w http.ResponseWriter, r *request) error {
	list, err := a.engine.PausedWorkflows(r.Context(), r.tenant())
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, PausedList{Workflows: PausedOf(list)})
}

// pauseWorkflow lets a workflow begin nothing new:
// PUT /v1/ops/paused/{workflow}.
func (a *API) pauseWorkflow(w http.ResponseWriter, r *request) error {
	in, err := readJSON[Reason](a, w, r)
	if err != nil {
		return err
	}
	if err := a.engine.PauseWorkflow(r.Context(), r.tenant(), r.text("workflow"), r.caller.Actor, in.Reason); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// resumeWorkflow is the end of that: DELETE /v1/ops/paused/{workflow}.
func (a *API) resumeWorkflow(w http.ResponseWriter, r *request) error {
	if err := a.engine.ResumeWorkflow(r.Context(), r.tenant(), r.text("workflow")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
