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

func TestUnknownPathIsProblem(t *testing.T) {
	g := newWithoutEngine(t)
	for _, path := range []string{"/", "/v1", "/v1/", "/v2/instances", "/v1/nothing", "/v1/instances/", "/v1/instances/x/", "/docs/", "/swagger",
		"/v1//instances", "/v1/../v1/instances", "/v1/instances/./x", "//v1/instances", "/v1/commands/scope", "/healthz/", "/v1/ops/nothing",
		"/v1/workflows//diagram"} {
		p := g.get(path).wantProblem(t, 404, workflow.NotFound)
		assert.Containsf(t, p.Detail, "/openapi.json", "%s does not say where to look", path)
	}
	g.post("/v1/workflows/parcel/./pack", "k", `{"to":"Wien"}`).wantProblem(t, 404, workflow.NotFound) // never a redirect
	for method, paths := range map[string][]string{"GET": {"/v1/workflows/parcel/pack", "/v1/commands"}, "PATCH": {"/v1/instances/x/stamp"},
		"DELETE": {"/v1/instances/x"}, "POST": {"/v1/events", "/v1/stream"}, "OPTIONS": {"/v1/workflows"}, "BREW": {"/readyz"}} {
		for _, path := range paths {
			a := g.do(method, path, nil)
			a.wantProblem(t, 405, workflow.MethodNotAllowed)
			want := map[bool]string{true: "POST", false: "GET, HEAD"}[method == "GET" || method == "PATCH"]
			assert.Equalf(t, want, a.header.Get("Allow"), "%s %s", method, path)
		}
	}
}

// A foreign host name that resolves to this machine is refused without authentication.
func TestNoAuthentication_LocalOnly(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"/v1/workflows", "/v1/events", "/v1/stream", "/metrics"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		require.NoError(t, err)
		r.Host = "rebound.example"
		s.send(r).wantProblem(t, 403, workflow.Forbidden)
	}
}

func TestPanicIsProblem(t *testing.T) {
	s := newServer(t, func(c *api.Config) {
		c.Identify = func(r *http.Request) (api.Caller, error) {
			if r.Header.Get("Pawl-Actor") == "nobody" {
				panic("who is that?")
			}
			return api.Loopback(r)
		}
	})
	p := s.get("/v1/workflows", "Pawl-Actor", "nobody", requestID, "r-1").wantProblem(t, 500, workflow.Internal)
	assert.Truef(t, !strings.Contains(p.Detail, "who is that") && strings.Contains(s.log.String(), "who is that?"),
		"the caller is told %q, the log says %s", p.Detail, s.log.String())
	line(t, s, "a handler panicked", "request_id=r-1")
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
