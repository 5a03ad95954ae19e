package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
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

const prefix = "/pawl"

func published(c *api.Config) { c.PublicURL = "https://shop.example.com" + prefix + "/" }

// A proxy may remove the prefix, or keep it.
func TestPublicURLPrefixesAnswers(t *testing.T) {
	t.Parallel()
	s := newGuarded(t, published)
	with := append(s.with("read submit keys"), "Content-Type", "application/json")
	for i, at := range []string{"", prefix} {
		n := string(rune('a' + i))
		created := s.post(at+"/v1/workflows/delivery/book", n, `{}`, with[:2]...)
		created.want(t, 201)
		location := created.header.Get("Location")
		assert.True(t, strings.HasPrefix(location, prefix+"/v1/instances/"), location)
		s.get(location, with[:2]...).want(t, 200)
		s.get(strings.TrimPrefix(location, prefix), with[:2]...).want(t, 200)

		accepted := s.post(location+"/deliver", n+"-2", `{"door":3}`, with[:2]...)
		accepted.want(t, 202)
		location = accepted.header.Get("Location")
		assert.True(t, strings.HasPrefix(location, prefix+"/v1/commands/"), location)
		s.get(location, with[:2]...).want(t, 200)

		made := s.do("POST", at+"/v1/keys", []byte(`{"name":"`+n+`","grants":["read"]}`), with...)
		made.want(t, 201)
		location = made.header.Get("Location")
		assert.True(t, strings.HasPrefix(location, prefix+"/v1/keys/"), location)
		s.get(location, with[:2]...).want(t, 200)

		cookie := s.do("POST", at+"/v1/tickets", []byte(`{"grants":["read:parcel"],"cookie":true}`), with...)
		cookie.want(t, 201)
		assert.Contains(t, cookie.header.Get("Set-Cookie"), "; Path="+prefix+"/v1/;")
		text := string(s.get(at+"/openapi.json", with[:2]...).body)
		assert.Contains(t, text, `"servers":[{"url":"https://shop.example.com/pawl"}]`)
		assert.Contains(t, string(s.get(at+"/asyncapi.json", with[:2]...).body),
			`"servers":{"public":{"host":"shop.example.com","pathname":"/pawl","protocol":"wss"}}`)
		s.get(at+"/docs").want(t, 200)
		s.get(at+"/healthz").want(t, 200)
		assert.Contains(t, string(s.get(at+"/nowhere").body), prefix+"/docs")
	}
	for _, path := range []string{"/pawl", "/pawlx/v1/me", "/pawl/pawl/v1/me", "/p%61wl/v1/me", "/x/pawl/v1/me"} {
		a := s.get(path)
		assert.Equal(t, 404, a.status, path)
	}
}

// Pages at the public URL have the server's own origin, even if the proxy does not forward their host.
func TestPublicURLIsOwnOrigin(t *testing.T) {
	t.Parallel()
	s := newServer(t, published)
	for origin, status := range map[string]int{"https://shop.example.com": 201, "https://shop.example.org": 403,
		"http://shop.example.com": 403} {
		a := s.post("/v1/workflows/parcel/pack", origin, `{"to":"Graz","weight":1}`, "Origin", origin)
		assert.Equalf(t, status, a.status, "%s %s", origin, a.body)
	}
}

func TestPublicURLServesOwnRoutes(t *testing.T) {
	t.Parallel()
	s := newServer(t, published, func(c *api.Config) {
		c.Routes = map[string]http.Handler{"GET /shop/{item}": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(r.URL.Path))
		})}
	})
	for _, path := range []string{"/shop/1", "/pawl/shop/1"} {
		a := s.get(path)
		assert.Truef(t, a.status == 200 && string(a.body) == "/shop/1", "%s: %d %s", path, a.status, a.body)
	}
}
