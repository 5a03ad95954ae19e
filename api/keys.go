package api

import "net/http"

// keys tells how the keys of the tenant's commands stand, or those of all tenants:
// GET /v1/ops/keys.
func (a *API) keys(w http.ResponseWriter, r *request) error {
	k, err := a.engine.Keys(r.Context(), r.tenant())
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, KeysOf(&k))
}

// metrics serves what is measured, of all tenants: GET /metrics.
func (a *API) metrics(w http.ResponseWriter, r *request) error {
	if a.cfg.Metrics == nil {
		return errNothingHere
	}
	a.cfg.Metrics.ServeHTTP(w, r.Request)
	return nil
}
