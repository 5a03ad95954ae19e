package api

import (
	"math"
	"net/http"

	"github.com/pawlhq/pawl/workflow"
)

// workflows lists the workflows: GET /v1/workflows.
func (a *API) workflows(w http.ResponseWriter, r *http.Request, _ Caller) error {
	if _, err := queryOf(r); err != nil {
		return err
	}
	all := a.engine.Workflows()
	list := WorkflowList{Workflows: make([]WorkflowSummary, len(all))}
	for i, f := range all {
		list.Workflows[i] = WorkflowSummary{Name: f.Name, Version: f.Version, Hash: f.Hash, States: f.States}
	}
	return sendJSON(w, http.StatusOK, list)
}

// workflow shows what one declares, with the JSON Schema of every payload:
// GET /v1/workflows/{workflow}, in its newest version or in ?version=.
func (a *API) workflow(w http.ResponseWriter, r *http.Request, _ Caller) error {
	q, err := queryOf(r, "version")
	if err != nil {
		return err
	}
	f, err := a.definition(r, q)
	if err != nil {
		return err
	}
	body, err := render(f.Describe())
	if err != nil {
		return err
	}
	sendTagged(w, r, `"`+f.Hash+`"`, body)
	return nil
}

// definition returns the workflow that path and query name.
func (a *API) definition(r *http.Request, q query) (*workflow.Workflow, error) {
	name, err := pathText(r, "workflow")
	if err != nil {
		return nil, err
	}
	version, err := q.integer("version", 0, 1, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	return a.engine.Workflow(name, int(version))
}
