package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/pawlhq/pawl/transitions"
)

// commandStatus says where a command stands: GET /v1/commands/{scope}/{key...}.
func (a *API) commandStatus(w http.ResponseWriter, r *http.Request, c Caller) error {
	if _, err := queryOf(r); err != nil {
		return err
	}
	scope, key := r.PathValue("scope"), r.PathValue("key")
	if err := transitions.CheckScope(scope); err != nil {
		return err
	}
	if err := transitions.CheckKey(key); err != nil {
		return err
	}
	record, err := a.engine.Command(r.Context(), c.Tenant, scope, key)
	if err != nil {
		return err
	}
	body, err := render(statusOf(&record))
	if err != nil {
		return err
	}
	sendTagged(w, r, contentTag(body), body)
	return nil
}

func statusOf(r *transitions.Record) CommandStatus {
	s := CommandStatus{
		Scope: r.Scope, Key: r.Key, Status: r.Status, Workflow: r.Workflow, Transition: r.Transition,
		Instance: r.Instance, Version: r.Version, Position: r.Position, Code: r.Code,
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.FinishedAt.UTC(), ExpiresAt: r.ExpiresAt.UTC(),
	}
	if r.FinishedAt.IsZero() {
		s.UpdatedAt = s.CreatedAt
	}
	switch r.Status {
	case transitions.Succeeded:
		s.Result = transitions.WithPosition(r.Body, r.Position)
	case transitions.FailedFinal:
		s.Problem = r.Body
	}
	return s
}

// contentTag is an entity tag that follows the content.
func contentTag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// sendTagged answers with the body, or with 304 when the caller has it already.
func sendTagged(w http.ResponseWriter, r *http.Request, tag string, body []byte) {
	w.Header().Set("ETag", tag)
	if notModified(r, tag) {
		w.Header().Set("Cache-Control", "no-cache")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	send(w, http.StatusOK, mediaJSON, body)
}
