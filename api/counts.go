package api

import (
	"net/http"

	"github.com/pawlhq/pawl/inspect"
)

// counts tells how many instances there are of each workflow, version and state,
// of the caller's tenant or of all: GET /v1/counts.
func (a *API) counts(w http.ResponseWriter, r *request) error {
	f := inspect.CountFilter{Tenant: r.tenant(), Workflow: r.text("workflow"), Definition: int(r.integer("definition")),
		States: r.states(), Open: r.choice("open")}
	counts, err := a.engine.Counts(r.Context(), f)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, CountsOf(&counts))
}
