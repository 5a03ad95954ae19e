package api

import "github.com/pawlhq/pawl/workflow"

// OpenStreams is how many streams are open.
func (a *API) OpenStreams() int { return a.streams.Open() }

// OpenAPI is the document of the interface with some workflows.
func OpenAPI(workflows []*workflow.Workflow) ([]byte, error) {
	return openAPI(publicURL{}, Routes(), workflows, true)
}

// AsyncAPI is the document of what streams.
func AsyncAPI() ([]byte, error) { return asyncAPI(publicURL{}, nil) }
