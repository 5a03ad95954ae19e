package api

import (
	"net/http"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

// Versions concern all tenants: what there is of them is for an [OperatorOfAll].

// VersionList is the versions of workflows that have ever run here.
type VersionList struct {
	Versions []inspect.WorkflowVersion `json:"versions"`
}

// Beginning is the version with which new instances begin.
type Beginning struct {
	Version int `json:"version"` // where a node knows a newer one, too
}

// versions lists them.
func (a *API) versions(r *request) (VersionList, error) {
	list, err := a.engine.Admin().VersionsInUse(r.Context())
	return VersionList{list}, err
}

// begin says with which version new instances of a workflow begin.
func (a *API) begin(r *request, in Beginning) error {
	if in.Version < 1 {
		return workflow.Errorf(workflow.InvalidRequest, "\"version\" is to be a version from 1 on; DELETE lets each node begin its newest one")
	}
	return a.engine.Admin().BeginVersion(r.Context(), r.text("workflow"), in.Version, r.caller.Actor)
}

// beginNewest is the end of that. There is no body.
func (a *API) beginNewest(w http.ResponseWriter, r *request) error {
	err := a.engine.Admin().BeginVersion(r.Context(), r.text("workflow"), 0, r.caller.Actor)
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
