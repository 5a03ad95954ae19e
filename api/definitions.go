package api

import (
	"net/http"

	"github.com/pawlhq/pawl/workflow"
)

// workflows lists the workflows: GET /v1/workflows.
func (a *API) workflows(w http.ResponseWriter, r *request) error {
	all := a.engine.Workflows()
	list := WorkflowList{Workflows: make([]WorkflowSummary, len(all))}
	for i, f := range all {
		list.Workflows[i] = WorkflowSummary{Name: f.Name, Version: f.Version, Hash: f.Hash, States: f.States}
	}
	return sendJSON(w, http.StatusOK, list)
}

// workflow shows what one declares, with the JSON Schema of every payload:
// GET /v1/workflows/{workflow}, in its newest version or in ?version=.
func (a *API) workflow(w http.ResponseWriter, r *request) error {
	f, err := a.definition(r)
	if err != nil {
		return err
	}
	body, err := render(f.Describe())
	if err != nil {
		return err
	}
	sendTagged(w, r.with(headerNoneMatch), `"`+f.Hash+`"`, body)
	return nil
}

// definition returns the workflow that path and query name.
func (a *API) definition(r *request) (*workflow.Workflow, error) {
	return a.engine.Workflow(r.text("workflow"), int(r.integer("version")))
}
