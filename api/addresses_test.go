package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/await"
	"github.com/pawlhq/pawl/workflow"
)

// What can become of a command can become of it at each of its addresses.
func TestACommandEndsAlikeAtEachOfItsAddresses(t *testing.T) {
	s := newServer(t)
	a := s.post("/v1/workflows/parcel/label", "l", `{"to":"Graz","label":"L-1"}`)
	a.want(t, http.StatusCreated)
	id, over := a.header.Get("Location"), s.packed("1").String()
	s.post("/v1/instances/"+over+"/send", "s", `{"via":"rail"}`).want(t, http.StatusOK)
	for _, c := range []struct{ path, body, other string }{
		{"/v1/workflows/parcel/pack", `{"to":"Wien"}`, `{"to":"Linz"}`}, {id + "/stamp", `{}`, `{"price":1}`}, {"/v1/workflows/parcel/keys/L-1/stamp", `{}`, `{"price":2}`},
	} {
		due := []string{"Pawl-Not-Before", time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "Idempotency-Scope", c.path}
		s.post(c.path, "k", c.body, due...).want(t, http.StatusAccepted)
		s.post(c.path, "k", c.other, due...).wantProblem(t, http.StatusUnprocessableEntity, workflow.KeyReused)
		s.exec("UPDATE pawl.command SET run_at = now() - interval '25 hours' WHERE key = 'k' AND scope = $1", c.path) // as if no node had been there
		await.Eventually(t, "the command is given up", func() bool { return s.post(c.path, "k", c.body, due...).status != http.StatusAccepted })
		s.post(c.path, "k", c.body, due...).wantProblem(t, http.StatusRequestTimeout, workflow.CommandAbandoned)
		s.exec("UPDATE pawl.command SET expires_at = now() - interval '1 second' WHERE key = 'k' AND scope = $1", c.path)
		s.post(c.path, "k", c.body, due...).wantProblem(t, http.StatusGone, workflow.KeyExpired)
	}
	s.post("/v1/workflows/parcel/pack", "v", `{"to":"Wien"}`, "If-Match", `"99"`).wantProblem(t, http.StatusPreconditionFailed, workflow.VersionConflict)
	s.post(id+"/stamp", "v", `{}`, "If-Match", `"99"`).wantProblem(t, http.StatusPreconditionFailed, workflow.VersionConflict)
	s.post("/v1/workflows/parcel/keys/L-1/stamp", "v", `{}`, "If-Match", `"99"`).wantProblem(t, http.StatusPreconditionFailed, workflow.VersionConflict)
	s.post("/v1/workflows/parcel/keys/L-1/send", "s", `{"via":"rail"}`).want(t, http.StatusOK)
	s.post("/v1/workflows/parcel/keys/L-1/stamp", "z", `{}`).wantProblem(t, http.StatusConflict, workflow.IllegalTransition)
	s.post("/v1/workflows/parcel/claim", "c", `{"to":"Graz","label":"L-1"}`).wantProblem(t, http.StatusConflict, workflow.AlreadyExists)
}
