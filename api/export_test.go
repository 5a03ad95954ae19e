package api

import (
	"sync/atomic"

	"github.com/pawlhq/pawl/workflow"
	"github.com/pawlhq/pawl/workflow/diagram"
)

// CountLayouts counts the layouts of diagrams from now on.
func (a *API) CountLayouts() *atomic.Int64 {
	var n atomic.Int64
	draw := a.diagrams.draw
	a.diagrams.draw = func(w *workflow.Workflow) *diagram.Drawn {
		n.Add(1)
		return draw(w)
	}
	return &n
}

// OpenStreams is how many streams are open.
func (a *API) OpenStreams() int { return a.streams.Open() }

// OpenAPI is the document of the interface with some workflows.
func OpenAPI(workflows []*workflow.Workflow) ([]byte, error) {
	return openAPI(publicURL{}, Routes(), workflows, true)
}

// AsyncAPI is the document of what streams.
func AsyncAPI() ([]byte, error) { return asyncAPI(publicURL{}, nil) }

// DocumentBuilds is how often the documents were built.
func (a *API) DocumentBuilds() int { return int(a.contract.builds.Load()) }
