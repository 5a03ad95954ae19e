package api

import (
	"net/http"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
	"github.com/pawlhq/pawl/workflow/diagram"
)

// workflows lists the workflows.
func (a *API) workflows(*request) (wire.WorkflowList, error) {
	return wire.WorkflowList{Workflows: each(a.engine.Read().Workflows(), func(f **workflow.Workflow) wire.WorkflowSummary {
		return wire.WorkflowSummary{Name: (*f).Name, Version: (*f).Version, Hash: (*f).Hash, States: (*f).States}
	})}, nil
}

// workflow shows what one declares, with the JSON Schema of every payload.
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

// definition returns the workflow that path and query name. A version that this node does not know may
// be one that there has never been.
func (a *API) definition(r *request) (*workflow.Workflow, error) {
	w, err := a.engine.Read().Workflow(r.text("workflow"), int(r.integer("version")))
	if workflow.CodeOf(err) == workflow.NotOnThisNode {
		return nil, workflow.Errorf(workflow.WorkflowNotFound, "%s", workflow.AsError(err).Message)
	}
	return w, err
}

// Media types of diagrams.
const (
	mediaSVG     = "image/svg+xml"
	mediaMermaid = "text/vnd.mermaid"
	mediaDOT     = "text/vnd.graphviz"
)

// formats are the names by which ?format= asks for them.
var formats = map[string]string{"svg": mediaSVG, "mermaid": mediaMermaid, "dot": mediaDOT}

// workflowDiagram draws a workflow: GET /v1/workflows/{workflow}/diagram, in its
// newest version or in ?version=.
func (a *API) workflowDiagram(w http.ResponseWriter, r *request) error {
	f, err := a.definition(r)
	if err != nil {
		return err
	}
	return a.draw(w, r, f, "")
}

// instanceDiagram draws an instance's workflow with its state marked:
// GET /v1/instances/{id}/diagram.
func (a *API) instanceDiagram(w http.ResponseWriter, r *request) error {
	id, err := a.addressed(r)
	if err != nil {
		return err
	}
	inst, err := a.engine.Read().Instance(r.Context(), r.tenant(), id)
	if err != nil {
		return err
	}
	f, err := a.engine.Read().Workflow(inst.Workflow, inst.Definition)
	if err != nil {
		return err
	}
	return a.draw(w, r, f, inst.State)
}

func (a *API) draw(w http.ResponseWriter, r *request, f *workflow.Workflow, current workflow.State) error {
	media := formats[r.text("format")]
	if media == "" {
		var err error
		if media, err = r.accepted(nil); err != nil { // which takes no grant
			return err
		}
	}
	options := diagram.Options{Current: current}
	var body []byte
	switch media {
	case mediaSVG:
		drawn, err := a.diagrams.of(r.Context(), f)
		if err != nil {
			return err
		}
		body, err = drawn.SVG(current)
		if err != nil {
			return &workflow.Error{Code: workflow.Internal, Message: "the diagram cannot be drawn", Cause: err}
		}
	case mediaMermaid:
		body = []byte(diagram.Mermaid(f, options))
	case mediaDOT:
		body = []byte(diagram.DOT(f, options))
	}
	w.Header().Set(headerPolicy, "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'") // an SVG is a document
	send(w, http.StatusOK, media, body)
	return nil
}
