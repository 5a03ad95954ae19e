package api

import (
	"net/http"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

// instanceThen shows an instance as it was. There is no ETag: what is shown can only
// change by being erased, and who has a copy of that should not be told to keep
// it.
func (a *API) instanceThen(w http.ResponseWriter, r *request) error {
	if r.given("version") && r.given("at") {
		return workflow.Errorf(workflow.InvalidRequest, "the past is asked for by version or by time, not by both")
	}
	id, err := a.addressed(r)
	if err != nil {
		return err
	}
	var then inspect.Past
	if r.given("version") {
		then, err = a.engine.InstanceAt(r.Context(), r.tenant(), id, r.integer("version"))
	} else {
		then, err = a.engine.InstanceAsOf(r.Context(), r.tenant(), id, r.time("at"))
	}
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, pastInstanceOf(&then))
}
