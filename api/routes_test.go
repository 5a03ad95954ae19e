package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

func TestEveryUnknownAddressIsAProblem(t *testing.T) {
	s := newServer(t)
	id := s.packed("1").String()
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v2/instances", "/v1/nothing", "/v1/instances/", "/v1/instances/" + id + "/",
		"/v1/instances/" + id + "/nothing/more",
		"/v1//instances", "/v1/../v1/instances", "/v1/instances/./" + id, "//v1/instances", "/v1/commands/scope", "/healthz/",
		"/v1/workflows/parcel/keys", "/v1/workflows//diagram", "/v1/ops/nothing",
	} {
		want := workflow.NotFound
		if path == "/v1/workflows/parcel/keys" {
			s.get(path).wantProblem(t, 405, workflow.MethodNotAllowed) // the address of a transition called "keys"
			continue
		}
		s.get(path).wantProblem(t, 404, want)
	}
	for _, path := range []string{"/v1/workflows//pack", "/v1//workflows/parcel/pack", "/v1/workflows/parcel/./pack"} {
		s.post(path, "k", `{"to":"Wien"}`).wantProblem(t, 404, workflow.NotFound) // never a redirect
	}
}

func TestMethodNotAllowed(t *testing.T) {
	s := newServer(t)
	id := s.packed("1").String()
	for _, c := range []struct{ method, path, allow string }{
		{"GET", "/v1/workflows/parcel/pack", "POST"},
		{"PUT", "/v1/workflows/parcel/pack", "POST"},
		{"DELETE", "/v1/instances/" + id, "GET, HEAD"},
		{"PATCH", "/v1/instances/" + id + "/stamp", "POST"},
		{"POST", "/v1/instances", "GET, HEAD"},
		{"GET", "/v1/commands", "POST"},
		{"POST", "/v1/events", "GET, HEAD"},
		{"POST", "/v1/stream", "GET, HEAD"},
		{"OPTIONS", "/v1/workflows", "GET, HEAD"},
		{"TRACE", "/healthz", "GET, HEAD"},
		{"BREW", "/readyz", "GET, HEAD"},
	} {
		a := s.do(c.method, c.path, nil)
		a.wantProblem(t, 405, workflow.MethodNotAllowed)
		assert.Equalf(t, c.allow, a.header.Get("Allow"), "%s %s: Allow", c.method, c.path)
	}
}

func TestNoAuthentication_LocalOnly(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"/v1/workflows", "/v1/events", "/v1/stream", "/v1/instances"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		require.NoError(t, err)
		r.Host = "rebound.example"
		s.send(r).wantProblem(t, 403, workflow.Forbidden)
	}
	before := s.rows()
	s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, "Origin", "https://evil.example").wantProblem(t, 403, workflow.Forbidden)
	s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, "Sec-Fetch-Site", "cross-site").wantProblem(t, 403, workflow.Forbidden)
	s.do(http.MethodPost, "/v1/workflows/parcel/pack", []byte(`{"to":"Wien"}`), "Content-Type", "text/plain", "Idempotency-Key", "k").
		wantProblem(t, 415, workflow.UnsupportedMedia)
	after := s.rows()
	assert.Equal(t, before["command"], after["command"], "a foreign page's command was stored")
	s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, "Origin", s.url).want(t, 201)
}

func TestAPanicIsAProblemAndTheServerGoesOn(t *testing.T) {
	s := newServer(t, func(c *api.Config) {
		c.Identify = func(r *http.Request) (api.Caller, error) {
			if r.Header.Get("Pawl-Actor") == "nobody" {
				panic("who is that?")
			}
			return api.Loopback(r)
		}
	})
	p := s.get("/v1/workflows", "Pawl-Actor", "nobody").wantProblem(t, 500, workflow.Internal)
	assert.Truef(t, !strings.Contains(p.Detail, "who is that") && strings.Contains(s.log.String(), "who is that?"),
		"the caller is told %q, the log says %s", p.Detail, s.log.String())
	s.get("/v1/workflows").want(t, 200)
}

func TestHealthAndReadiness(t *testing.T) {
	s := newServer(t)
	s.get("/healthz").want(t, 200)
	// Which waits for the database for a moment only.
	await.Eventually(t, "the node is ready", func() bool { return s.get("/readyz").status == 200 })
	require.NoError(t, s.api.Stop(context.Background()))
	a := s.get("/readyz")
	a.wantProblem(t, 503, workflow.ShuttingDown)
	assert.NotEqual(t, "", a.header.Get("Retry-After"), "503 without Retry-After")
	s.get("/healthz").want(t, 200)
	s.pool.Close()
	s.get("/v1/instances").wantProblem(t, 503, workflow.Unavailable)
}
