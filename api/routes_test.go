package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth"
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

func TestEveryOtherMethodIsAProblemThatNamesTheRightOnes(t *testing.T) {
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
		if got := a.header.Get("Allow"); got != c.allow {
			t.Errorf("%s %s: Allow %q, want %q", c.method, c.path, got, c.allow)
		}
	}
}

func TestOnlyThisMachineIsServedWithoutAuthentication(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"/v1/workflows", "/v1/events", "/v1/stream", "/v1/instances"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "rebound.example"
		s.send(r).wantProblem(t, 403, workflow.Forbidden)
	}
	before := s.rows()
	s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, "Origin", "https://evil.example").wantProblem(t, 403, workflow.Forbidden)
	s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, "Sec-Fetch-Site", "cross-site").wantProblem(t, 403, workflow.Forbidden)
	s.do(http.MethodPost, "/v1/workflows/parcel/pack", []byte(`{"to":"Wien"}`), "Content-Type", "text/plain", "Idempotency-Key", "k").
		wantProblem(t, 415, workflow.UnsupportedMedia)
	if after := s.rows(); after["command"] != before["command"] {
		t.Error("a foreign page's command was stored")
	}
	s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, "Origin", s.url).want(t, 201)
}

func TestIdentifyDecidesWhoCalls(t *testing.T) {
	s := newServer(t, func(c *api.Config) {
		c.Identify = func(r *http.Request) (api.Caller, error) {
			if r.Header.Get("Authorization") != "Bearer 7" {
				return api.Caller{}, workflow.Errorf(workflow.Unauthorized, "a token is required")
			}
			return api.Caller{Tenant: "acme", Actor: "seven", Roles: []string{"clerk"},
				Grants: auth.Grants{{Right: auth.Read}, {Right: auth.Submit}}}, nil
		}
	})
	for _, path := range []string{"/v1/workflows", "/v1/events", "/v1/stream"} {
		s.get(path).wantProblem(t, 401, workflow.Unauthorized)
	}
	s.get("/healthz").want(t, 200)
	a := s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, "Authorization", "Bearer 7", "Pawl-Tenant", "ignored")
	a.want(t, 201)
	history := read[api.History](t, s.get(a.header.Get("Location")+"/history", "Authorization", "Bearer 7"))
	if history.Entries[0].Actor != "seven" {
		t.Errorf("the actor is %q", history.Entries[0].Actor)
	}
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
	if strings.Contains(p.Detail, "who is that") || !strings.Contains(s.log.String(), "who is that?") {
		t.Errorf("the caller is told %q, the log says %s", p.Detail, s.log.String())
	}
	s.get("/v1/workflows").want(t, 200)
}

func TestHealthAndReadiness(t *testing.T) {
	s := newServer(t)
	s.get("/healthz").want(t, 200)
	// Which waits for the database for a moment only.
	await.Eventually(t, "the node is ready", func() bool { return s.get("/readyz").status == 200 })
	if err := s.api.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	a := s.get("/readyz")
	a.wantProblem(t, 503, workflow.ShuttingDown)
	if a.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	s.get("/healthz").want(t, 200)
	s.pool.Close()
	s.get("/v1/instances").wantProblem(t, 503, workflow.Unavailable)
}

func TestConfigRefusesNonsense(t *testing.T) {
	s := newServer(t)
	if _, err := api.New(nil, api.Config{}); err == nil {
		t.Error("no engine is needed")
	}
	if _, err := api.New(s.engine, api.Config{Stream: api.Stream{MaxLag: -1}}); err == nil || !strings.Contains(err.Error(), "Stream.MaxLag") {
		t.Errorf("a negative limit: %v", err)
	}
}
