package api

import "net/http"

// keys tells how the keys of the tenant's commands stand, or those of all tenants:
// GET /v1/ops/keys.
func (a *API) keys(w http.ResponseWriter, r *http.Request, c Caller) error {
	q, err := queryOf(r, "all_tenants")
	if err != nil {
		return err
	}
	tenant, err := q.whose(c)
	if err != nil {
		return err
	}
	k, err := a.engine.Keys(r.Context(), tenant)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, k)
}

// metrics serves what is measured, of all tenants: GET /metrics.
func (a *API) metrics(w http.ResponseWriter, r *http.Request, c Caller) error {
	if err := c.operatesAll(); err != nil {
		return err
	}
	if a.cfg.Metrics == nil {
		return errNothingHere
	}
	a.cfg.Metrics.ServeHTTP(w, r)
	return nil
}
