package api_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/workflow"
)

const shop = "https://shop.example"

func ofShop(headers ...string) []string {
	return append([]string{"Origin", shop, "Sec-Fetch-Site", "cross-site"}, headers...)
}

func newShop(t *testing.T) *server {
	t.Helper()
	return newServer(t, func(c *api.Config) {
		c.Origins = []string{"http://localhost:3000", shop}
		c.Routes = map[string]http.Handler{"GET /own": http.NotFoundHandler()}
	})
}

// allows reports whether a header that lists names has them, in any case.
func allows(h http.Header, header string, names ...string) bool {
	list := strings.Split(strings.ToLower(h.Get(header)), ", ")
	return !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(list, strings.ToLower(n)) })
}

func TestAPageOfAListedOriginIsServed(t *testing.T) {
	s := newShop(t)
	preflight := s.do(http.MethodOptions, "/v1/workflows/parcel/pack", nil,
		ofShop("Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,idempotency-key")...)
	preflight.want(t, 204)
	if h := preflight.header; h.Get("Access-Control-Allow-Origin") != shop || h.Get("Access-Control-Allow-Methods") != "POST" ||
		!allows(h, "Access-Control-Allow-Headers", "Idempotency-Key", "Content-Type", "Authorization", "If-Match", requestID, "Traceparent") ||
		h.Get("Access-Control-Max-Age") == "" || !slices.Contains(h.Values("Vary"), "Origin") {
		t.Errorf("%v", h)
	}
	placed := s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, ofShop()...)
	placed.want(t, 201)
	read := s.get(placed.header.Get("Location"), ofShop()...)
	read.want(t, 200)
	refused := s.post("/v1/workflows/parcel/pack", "", `{"to":"Wien"}`, ofShop()...)
	for name, h := range map[string]http.Header{"placed": placed.header, "read": read.header, "refused": refused.header,
		"not found": s.get("/v1/nothing", ofShop()...).header} {
		if h.Get("Access-Control-Allow-Origin") != shop || !slices.Contains(h.Values("Vary"), "Origin") ||
			!allows(h, "Access-Control-Expose-Headers", "Location", "ETag", "Pawl-Position", "Idempotent-Replayed", "Retry-After", requestID) {
			t.Errorf("%s: %v", name, h)
		}
		assert.Equalf(t, "", h.Get("Access-Control-Allow-Credentials"), "%s: credentials are allowed", name)
	}
	ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/v1/stream",
		http.Header{"Origin": {shop}})
	require.NoError(t, err)
	_ = ws.Close()
}

func TestAPageOfAnotherOriginIsNotServed(t *testing.T) {
	s := newShop(t)
	before := s.rows()
	for _, origin := range []string{"https://evil.example", "http://shop.example", shop + ":444", shop + ".evil.example",
		"https://Shop.example", "null", "*"} {
		foreign := []string{"Origin", origin, "Sec-Fetch-Site", "cross-site"}
		preflight := s.do(http.MethodOptions, "/v1/workflows/parcel/pack", nil, append(foreign, "Access-Control-Request-Method", "POST")...)
		preflight.wantProblem(t, 405, workflow.MethodNotAllowed)
		posted := s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, foreign...)
		posted.wantProblem(t, 403, workflow.Forbidden)
		read := s.get("/v1/workflows", foreign...)
		read.want(t, 200)
		for _, h := range []http.Header{preflight.header, posted.header, read.header} {
			unshared(t, h)
			assert.Containsf(t, h.Values("Vary"), "Origin", "a cache could give it to %s", shop)
		}
		s.get("/v1/stream", append(slices.Clone(handshake), "Origin", origin)...).wantProblem(t, 403, workflow.Forbidden)
	}
	s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, "Origin", shop, "Origin", "https://evil.example").wantProblem(t, 403,
		workflow.Forbidden)
	after := s.rows()
	assert.Equal(t, before["command"], after["command"], "a foreign page has changed something")
	unshared(t, s.get("/own", append(ofShop(), "X-Content-Type-Options", "")...).withNosniff().header) // the program's routes do it themselves
}

// withNosniff passes over that a route of the program does not say it.
func (a answer) withNosniff() answer {
	a.header = maps.Clone(a.header)
	a.header.Set("X-Content-Type-Options", "nosniff")
	return a
}

// Each path answers with its own methods and headers; an unknown path answers with none.
func TestAPreflightIsAnsweredFromTheTableOfRoutes(t *testing.T) {
	s := newShop(t)
	for _, r := range api.Routes() {
		path := strings.NewReplacer("{", "", "}", "", "...", "").Replace(r.Path)
		h := s.do(http.MethodOptions, path, nil, ofShop("Access-Control-Request-Method", r.Method)...)
		assert.Truef(t, h.status == 204 && allows(h.header, "Access-Control-Allow-Methods", r.Method),
			"%s %s: %d %v", r.Method, r.Path, h.status, h.header)
		for _, p := range r.Params {
			assert.Falsef(t, p.In == api.InHeader && !allows(h.header, "Access-Control-Allow-Headers", p.Name),
				"%s %s does not allow %s", r.Method, r.Path, p.Name)
		}
	}
	s.do(http.MethodOptions, "/v1/instances", nil, ofShop("Access-Control-Request-Method", "DELETE")...).want(t, 405)
	s.do(http.MethodOptions, "/v1/instances", nil, ofShop()...).want(t, 405)
	s.do(http.MethodOptions, "/v1/ops/nothing/more", nil, ofShop("Access-Control-Request-Method", "GET")...).want(t, 404)
}
