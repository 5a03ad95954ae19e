package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/workflow"
)

func says(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = fmt.Fprintf(w, "%s %s", text, r.PathValue("x"))
	})
}

func TestRoutesOfTheProgramAreServedBesidePawls(t *testing.T) {
	s := newServer(t, func(c *api.Config) {
		c.Routes = map[string]http.Handler{
			"GET /shop/{x}": says("shop"),
			"/":             says("all else"),
			"/broken":       http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret") }),
		}
	})
	for path, want := range map[string]string{"/shop/7": "shop 7", "/": "all else ", "/v2/instances": "all else ", "/shop/7/8": "all else "} {
		if got := s.get(path); got.status != 200 || string(got.body) != want || got.header.Get("Content-Type") != "text/plain" {
			t.Errorf("%s: %d %q", path, got.status, got.body)
		}
	}
	s.get("/broken").wantProblem(t, 500, workflow.Internal)
	// Paths below Pawl's prefixes stay Pawl's, even if they have no route yet.
	s.get("/healthz").want(t, 200)
	s.get("/v1/workflows").want(t, 200)
	s.get("/v1/nothing").wantProblem(t, 404, workflow.NotFound)
	s.post("/healthz", "k", `{}`).wantProblem(t, 405, workflow.MethodNotAllowed)
}

// A foreign host name that resolves to this machine does not reach a program's own routes either, unless the program authenticates callers.
func TestRoutesOfTheProgramAreForLoopbackHosts(t *testing.T) {
	s := newServer(t, func(c *api.Config) { c.Routes = map[string]http.Handler{"/shop/{x}": says("shop")} })
	rebound := httptest.NewRequest("GET", "http://evil.example/shop/7", nil)
	for identify, want := range map[string]int{"": 403, "its own": 200} {
		c := api.Config{Routes: map[string]http.Handler{"/shop/{x}": says("shop")}}
		if identify != "" {
			c.Identify = func(*http.Request) (api.Caller, error) { return api.Caller{}, nil }
		}
		a, err := api.New(s.engine, c)
		require.NoError(t, err)
		w := httptest.NewRecorder()
		a.ServeHTTP(w, rebound)
		assert.Truef(t, w.Code == want && (want != 403 || strings.Contains(w.Body.String(), `"code":"forbidden"`)),
			"Identify %q: %d %s", identify, w.Code, w.Body)
	}
	s.get("/shop/7").want(t, 200)
}

func TestProgramRoutes_NotFound(t *testing.T) {
	s := newServer(t, func(c *api.Config) {
		c.Routes = map[string]http.Handler{"GET /shop/{x}": says("shop"), "/tree/": says("tree")}
	})
	s.get("/nothing").wantProblem(t, 404, workflow.NotFound)
	s.get("/tree").wantProblem(t, 404, workflow.NotFound) // never a redirect
	if got := s.post("/shop/7", "k", `{}`); got.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("%d, Allow %q", got.status, got.header.Get("Allow"))
	} else {
		got.wantProblem(t, 405, workflow.MethodNotAllowed)
	}
}
