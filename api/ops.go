package api

import (
	"context"
	"net/http"
	"time"
)

// verify checks the audit chain of ?instance=, or of all of the tenant's:
// GET /v1/ops/verify.
func (a *API) verify(w http.ResponseWriter, r *request) error {
	v, err := a.engine.Verify(r.Context(), r.tenant(), r.id("instance"))
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, verificationOf(&v))
}

// healthy says that the process serves: GET /healthz.
func (a *API) healthy(w http.ResponseWriter, _ *request) error {
	send(w, http.StatusOK, mediaJSON, []byte(`{"status":"ok"}`))
	return nil
}

// readyTimeout bounds how long a readiness probe waits for the database.
const readyTimeout = 2 * time.Second

// ready says whether the node can take requests: GET /readyz.
func (a *API) ready(w http.ResponseWriter, r *request) error {
	if err := a.streams.Refusing(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := a.engine.Ready(ctx); err != nil {
		return err
	}
	send(w, http.StatusOK, mediaJSON, []byte(`{"status":"ready"}`))
	return nil
}
