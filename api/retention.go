package api

import "net/http"

// retention tells who removes what has expired, and what is kept for whom:
// GET /v1/ops/retention.
func (a *API) retention(w http.ResponseWriter, r *request) error {
	s, err := a.engine.Retention(r.Context())
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, RetentionOf(&s))
}
