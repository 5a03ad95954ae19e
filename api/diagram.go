package api

import (
	"net/http"

	"github.com/pawlhq/pawl/workflow"
	"github.com/pawlhq/pawl/workflow/diagram"
)

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
func (a *API) workflowDiagram(w http.ResponseWriter, r *http.Request, _ Caller) error {
	q, err := queryOf(r, "format", "version")
	if err != nil {
		return err
	}
	f, err := a.definition(r, q)
	if err != nil {
		return err
	}
	return draw(w, r, q, f, "")
}

// instanceDiagram draws an instance's workflow with its state marked:
// GET /v1/instances/{id}/diagram.
func (a *API) instanceDiagram(w http.ResponseWriter, r *http.Request, c Caller) error {
	id, err := a.addressed(r, c)
	if err != nil {
		return err
	}
	q, err := queryOf(r, "format")
	if err != nil {
		return err
	}
	inst, err := a.engine.Instance(r.Context(), c.Tenant, id)
	if err != nil {
		return err
	}
	f, err := a.engine.Workflow(inst.Workflow, inst.Definition)
	if err != nil {
		return err
	}
	return draw(w, r, q, f, inst.State)
}

func draw(w http.ResponseWriter, r *http.Request, q query, f *workflow.Workflow, current workflow.State) error {
	media, err := formatOf(r, q)
	if err != nil {
		return err
	}
	options := diagram.Options{Current: current}
	var body []byte
	switch media {
	case mediaSVG:
		if body, err = diagram.SVG(f, options); err != nil {
			return &workflow.Error{Code: workflow.Internal, Message: "the diagram cannot be drawn", Cause: err}
		}
	case mediaMermaid:
		body = []byte(diagram.Mermaid(f, options))
	case mediaDOT:
		body = []byte(diagram.DOT(f, options))
	}
	h := w.Header()
	h.Set("Vary", "Accept")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'") // an SVG is a document
	send(w, http.StatusOK, media, body)
	return nil
}

// formatOf is the media type that ?format= or else the Accept header asks for.
func formatOf(r *http.Request, q query) (string, error) {
	if name, given := q["format"]; given {
		media, known := formats[name]
		if !known {
			return "", workflow.Errorf(workflow.InvalidRequest, `query parameter "format" is not svg, mermaid or dot`)
		}
		return media, nil
	}
	media := accepted(r, mediaSVG, mediaMermaid, mediaDOT)
	if media == "" {
		return "", workflow.Errorf(workflow.NotAcceptable, "diagrams are %s, %s or %s", mediaSVG, mediaMermaid, mediaDOT)
	}
	return media, nil
}
