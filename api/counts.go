package api

import (
	"net/http"

	"github.com/pawlhq/pawl/inspect"
)

// counts tells how many instances there are of each workflow, version and state,
// of the caller's tenant or of all: GET /v1/counts.
func (a *API) counts(w http.ResponseWriter, r *http.Request, c Caller) error {
	q, err := filtersOf(r, "workflow", "definition", "state*", "open", "all_tenants")
	if err != nil {
		return err
	}
	f := inspect.CountFilter{Workflow: q["workflow"]}
	if f.Tenant, err = q.whose(c); err != nil {
		return err
	}
	if f.Definition, err = q.definition(); err != nil {
		return err
	}
	if f.States, err = statesOf(r); err != nil {
		return err
	}
	if f.Open, err = q.choice("open"); err != nil {
		return err
	}
	counts, err := a.engine.Counts(r.Context(), f)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, counts)
}
