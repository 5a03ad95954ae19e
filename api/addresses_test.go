package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A command has the same possible outcomes at each of its paths.
func TestCommandStatusesOfEachPath(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := s.post("/v1/workflows/parcel/label", "l", `{"to":"Graz","label":"L-1"}`)
	a.want(t, http.StatusCreated)
	id, over := a.header.Get("Location"), s.packed("1").String()
	s.post("/v1/instances/"+over+"/send", "s", `{"via":"rail"}`).want(t, http.StatusOK)
	for _, c := range []struct{ path, body, other string }{
		{"/v1/workflows/parcel/pack", `{"to":"Wien"}`, `{"to":"Linz"}`}, {id + "/stamp", `{}`, `{"price":1}`},
		{"/v1/workflows/parcel/keys/L-1/stamp", `{}`, `{"price":2}`},
	} {
		due := []string{"Pawl-Not-Before", time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "Idempotency-Scope", c.path}
		s.post(c.path, "k", c.body, due...).want(t, http.StatusAccepted)
		s.post(c.path, "k", c.other, due...).wantProblem(t, http.StatusUnprocessableEntity, workflow.KeyReused)
		// as if no node had been there
		s.exec("UPDATE pawl.command SET run_at = now() - interval '25 hours' WHERE key = 'k' AND scope = $1", c.path)
		await.Eventually(t, "the command is given up", func() bool { return s.post(c.path, "k", c.body, due...).status != http.StatusAccepted })
		s.post(c.path, "k", c.body, due...).wantProblem(t, http.StatusRequestTimeout, workflow.CommandAbandoned)
		s.exec("UPDATE pawl.command SET expires_at = now() - interval '1 second' WHERE key = 'k' AND scope = $1", c.path)
		s.post(c.path, "k", c.body, due...).wantProblem(t, http.StatusGone, workflow.KeyExpired)
	}
	s.post("/v1/workflows/parcel/pack", "v", `{"to":"Wien"}`, "If-Match", `"99"`).wantProblem(t, http.StatusPreconditionFailed,
		workflow.VersionConflict)
	s.post(id+"/stamp", "v", `{}`, "If-Match", `"99"`).wantProblem(t, http.StatusPreconditionFailed, workflow.VersionConflict)
	s.post("/v1/workflows/parcel/keys/L-1/stamp", "v", `{}`, "If-Match", `"99"`).wantProblem(t, http.StatusPreconditionFailed,
		workflow.VersionConflict)
	s.post("/v1/workflows/parcel/keys/L-1/send", "s", `{"via":"rail"}`).want(t, http.StatusOK)
	s.post("/v1/workflows/parcel/keys/L-1/stamp", "z", `{}`).wantProblem(t, http.StatusConflict, workflow.IllegalTransition)
	s.post("/v1/workflows/parcel/keys/L-7/label", "n", `{"to":"Graz","label":"L-7"}`).want(t, http.StatusCreated)
	s.post("/v1/workflows/parcel/keys/L-8/label", "n", `{"to":"Graz","label":"L-7"}`).wantProblem(t, http.StatusBadRequest,
		workflow.InvalidRequest)
	s.post("/v1/workflows/parcel/pack", "o", `{"to":"Wien"}`).want(t, http.StatusCreated)
	s.post("/v1/workflows/parcel/keys/1/pack", "o", `{"to":"Wien"}`).wantProblem(t, http.StatusBadRequest, workflow.InvalidRequest)
	s.post("/v1/workflows/parcel/claim", "c", `{"to":"Graz","label":"L-1"}`).wantProblem(t, http.StatusConflict, workflow.AlreadyExists)
}

// sinkChanges are what is asked of a sink.
var sinkChanges = map[string]string{"skip": `{"all":true,"reason":"x"}`, "redrive": `{"all":true}`, "move": `{"position":0,"reason":"x"}`,
	"pause": `{}`, "resume": `{}`, "forget": `{}`}

// Nor can an operator's key be used for two operations or without a time limit.
func TestInstanceOperationsNeedKeys(t *testing.T) {
	s := newServer(t)
	a := s.post("/v1/workflows/parcel/label", "l", `{"to":"Graz","label":"L-1"}`)
	a.want(t, http.StatusCreated)
	id := strings.Replace(a.header.Get("Location"), "/v1/", "/v1/ops/", 1)
	for _, path := range []string{id + "/pause", id + "/resume", "/v1/ops/workflows/parcel/keys/L-1/pause",
		"/v1/ops/workflows/parcel/keys/L-1/resume",
		id + "/migrate", "/v1/ops/workflows/parcel/keys/L-1/migrate", id + "/correct", "/v1/ops/workflows/parcel/keys/L-1/correct"} {
		body, other := `{}`, `{"reason":"x"}`
		if strings.HasSuffix(path, "/migrate") {
			body, other = `{"to":1}`, `{"to":2}` // it is on version 1
		}
		if strings.HasSuffix(path, "/correct") {
			body, other = `{"data":{},"reason":"x"}`, `{"data":{},"reason":"y"}`
		}
		s.post(path, path, body).want(t, http.StatusOK)
		s.post(path, path, other).wantProblem(t, http.StatusUnprocessableEntity, workflow.KeyReused)
		s.exec("UPDATE pawl.command SET expires_at = now() - interval '1 second' WHERE key = $1", path)
		s.post(path, path, body).wantProblem(t, http.StatusGone, workflow.KeyExpired)
	}
	for _, change := range []string{"skip", "redrive", "move", "pause", "resume", "forget"} {
		a := s.do(http.MethodPost, "/v1/ops/sinks/nothing/"+change, []byte(sinkChanges[change]), "Content-Type", "application/json")
		a.wantProblem(t, http.StatusNotFound, workflow.NotFound)
	}
	for _, action := range []string{"retry", "resolve", "abandon"} {
		s.post("/v1/ops/commands/"+action, "n", `{"scope":"none","key":"none"}`).wantProblem(t, http.StatusNotFound, workflow.CommandNotFound)
	}
	s.exec("INSERT INTO pawl.outbox_sink (name) VALUES ('old')")
	s.do(http.MethodPost, "/v1/ops/sinks/old/forget", []byte(`{}`), "Content-Type", "application/json").want(t, http.StatusNoContent)
}

// A message has the same outcomes as a command, even if an operator sends it again.
func TestMessageStatuses(t *testing.T) {
	s := newServer(t, withPost)
	s.post("/v1/workflows/parcel/label", "2", `{"to":"Graz","label":"L-2"}`).want(t, http.StatusCreated)
	operate := func(method, path, body string) answer {
		return s.do(method, "/v1/ops/"+path, []byte(body), "Content-Type", "application/json")
	}
	operate(http.MethodPut, "paused/parcel", `{}`).want(t, http.StatusNoContent)
	s.mail("new", `{"type":"announced","label":"L-1"}`).wantProblem(t, http.StatusServiceUnavailable, workflow.Paused)
	s.mail("late", `{"type":"scanned","label":"L-2"}`).wantProblem(t, http.StatusServiceUnavailable, workflow.Paused)
	operate(http.MethodDelete, "paused/parcel", "").want(t, http.StatusNoContent)
	s.mail("twice", `{"type":"scanned","label":"L-9"}`).wantProblem(t, http.StatusNotFound, workflow.InstanceNotFound)
	s.mail("twice", `{"type":"scanned","label":"L-2"}`).want(t, http.StatusOK)
	list := s.deadMessages("").Messages
	s.post("/v1/workflows/parcel/keys/L-2/send", "s", `{"via":"rail"}`).want(t, http.StatusOK)
	want := map[string]int{"new": 201, "late": 409, "twice": 422}
	for _, m := range list {
		a := operate(http.MethodPost, "inbox/retry", fmt.Sprintf(`{"consumer":"post","message":%q,"hash":%q}`, m.Message, m.Hash))
		assert.Equalf(t, want[m.Message], a.status, "%s %s", m.Message, a.body)
		delete(want, m.Message)
	}
	assert.Empty(t, want, "not on the list")
}

// A request that only a node with the instance's version can answer is retryable, for callers and for senders of messages.
func TestNotOnThisNode_Retryable(t *testing.T) {
	s := newServer(t, withPost)
	id := read[transitions.Result](t, s.post("/v1/workflows/parcel/label", "l", `{"to":"Wien","label":"L-1"}`)).Instance.String()
	later := s.post("/v1/instances/"+id+"/send", "later", `{"via":"air"}`, "Pawl-Not-Before", time.Now().Add(time.Hour).Format(time.RFC3339),
		"Pawl-Actor", "ann", "Pawl-Roles", "clerk")
	later.want(t, 202)
	s.exec("UPDATE pawl.instance SET definition = 2 WHERE id = $1", id)
	for what, a := range map[string]answer{
		"a command":                s.post("/v1/instances/"+id+"/stamp", "1", `{"price":1}`),
		"by its key":               s.post("/v1/workflows/parcel/keys/L-1/stamp", "2", `{"price":1}`),
		"what nobody here knows":   s.post("/v1/instances/"+id+"/burn", "3", `{}`),
		"a payload likewise":       s.post("/v1/instances/"+id+"/stamp", "4", `{"colour":"red"}`),
		"a dry run":                s.post("/v1/instances/"+id+"/stamp?dry_run=true", "5", `{"price":1}`),
		"a message":                s.mail("m", `{"type":"scanned","label":"L-1","price":1}`),
		"what can be done":         s.get("/v1/instances/" + id + "/transitions"),
		"a drawing":                s.get("/v1/instances/" + id + "/diagram"),
		"who may cancel a command": s.do(http.MethodDelete, later.header.Get("Location"), nil, "Pawl-Actor", "bob", "Pawl-Roles", "clerk"),
	} {
		if a.wantProblem(t, 503, workflow.NotOnThisNode); a.header.Get("Retry-After") == "" {
			t.Errorf("%s: when to come again is not said", what)
		}
	}
	dead := s.deadMessages("")
	assert.Emptyf(t, dead.Messages, "%+v", dead)
	v := read[wire.InstanceView](t, s.get("/v1/instances/"+id))
	assert.Truef(t, v.Definition == 2 && v.Version == 1, "%+v", v)
	s.exec("UPDATE pawl.instance SET definition = 1 WHERE id = $1", id) // as on a node that knows it
	s.post("/v1/instances/"+id+"/stamp", "1", `{"price":1}`).want(t, 200)
	s.mail("m", `{"type":"scanned","label":"L-1","price":1}`).want(t, 200)
}
