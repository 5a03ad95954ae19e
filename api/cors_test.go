package api_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"

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

func TestListedOriginIsServed(t *testing.T) {
	s := newShop(t)
	preflight := s.do(http.MethodOptions, "/v1/workflows/parcel/pack", nil,
		ofShop("Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,idempotency-key")...)
	preflight.want(t, 204)
	h := preflight.header
	assert.Truef(t, h.Get("Access-Control-Allow-Origin") == shop && h.Get("Access-Control-Allow-Methods") == "POST" &&
		allows(h, "Access-Control-Allow-Headers", "Idempotency-Key", "Content-Type", "Authorization", "If-Match", requestID, "Traceparent") &&
		h.Get("Access-Control-Max-Age") != "" && slices.Contains(h.Values("Vary"), "Origin"), "%v", h)
	placed := s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, ofShop()...)
	placed.want(t, 201)
	for name, h := range map[string]http.Header{"placed": placed.header, "read": s.get(placed.header.Get("Location"), ofShop()...).header,
		"refused":   s.post("/v1/workflows/parcel/pack", "", `{"to":"Wien"}`, ofShop()...).header,
		"not found": s.get("/v1/nothing", ofShop()...).header} {
		assert.Truef(t, h.Get("Access-Control-Allow-Origin") == shop && slices.Contains(h.Values("Vary"), "Origin") &&
			allows(h, "Access-Control-Expose-Headers", "Location", "ETag", "Pawl-Position", "Idempotent-Replayed", "Retry-After", requestID) &&
			h.Get("Access-Control-Allow-Credentials") == "", "%s: %v", name, h)
	}
	s.dialWith(&websocket.Dialer{}, "Origin", shop)
}

func TestUnlistedOriginIsNotServed(t *testing.T) {
	s := newShop(t)
	before := s.rows()
	shared := func(h http.Header) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(h)), func(n string) bool { return strings.HasPrefix(n, "Access-Control-") })
	}
	foreign := map[string][]string{"an old browser": {"Origin", "https://evil.example"}, "only that it is": {"Sec-Fetch-Site", "cross-site"},
		"another port": {"Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"}}
	for _, origin := range []string{"http://shop.example", shop + ":444", shop + ".evil.example", "https://Shop.example", "null", "*"} {
		foreign[origin] = []string{"Origin", origin, "Sec-Fetch-Site", "cross-site"}
	}
	for name, headers := range foreign {
		for method, path := range map[string]string{http.MethodPost: "/v1/workflows/parcel/pack", http.MethodPut: "/v1/ops/paused/parcel",
			http.MethodDelete: "/v1/commands/parcel:pack/k"} {
			a := s.do(method, path, []byte(`{}`), append(headers, "Content-Type", "application/json", "Idempotency-Key", "k")...)
			a.wantProblem(t, 403, workflow.Forbidden)
			assert.Falsef(t, shared(a.header), "%s %s: %v", name, path, a.header)
		}
		preflight := s.do(http.MethodOptions, "/v1/workflows/parcel/pack", nil, append(headers, "Access-Control-Request-Method", "POST")...)
		preflight.wantProblem(t, 405, workflow.MethodNotAllowed)
		for _, a := range []answer{preflight, s.get("/v1/workflows", headers...), s.get("/healthz", headers...)} {
			assert.Truef(t, !shared(a.header) && slices.Contains(a.header.Values("Vary"), "Origin") &&
				a.header.Get("X-Content-Type-Options") == "nosniff", "%s: %v", name, a.header)
		}
		_, cut := s.source("/v1/events", headers...)
		cut()
		if headers[0] == "Origin" {
			s.get("/v1/stream", append(slices.Clone(handshake), headers[:2]...)...).wantProblem(t, 403, workflow.Forbidden)
		}
	}
	s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, "Origin", shop, "Origin", "https://evil.example").wantProblem(t, 403,
		workflow.Forbidden)
	assert.Equal(t, before, s.rows())
	assert.False(t, shared(s.get("/own", ofShop()...).header)) // a program's routes decide themselves
	s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, "Origin", s.url, "Sec-Fetch-Site", "same-origin").want(t, 201)
}

// Each path answers a preflight with its own methods and headers; an unknown path answers with none.
func TestPreflightFollowsRouteTable(t *testing.T) {
	s := newShop(t)
	for _, r := range api.Routes() {
		path := strings.NewReplacer("{", "", "}", "", "...", "").Replace(r.Path)
		a := s.do(http.MethodOptions, path, nil, ofShop("Access-Control-Request-Method", r.Method)...)
		assert.Truef(t, a.status == 204 && allows(a.header, "Access-Control-Allow-Methods", r.Method),
			"%s %s: %d %v", r.Method, r.Path, a.status, a.header)
		for _, p := range r.Params {
			assert.Falsef(t, p.In == api.InHeader && !allows(a.header, "Access-Control-Allow-Headers", p.Name),
				"%s %s does not allow %s", r.Method, r.Path, p.Name)
		}
	}
	s.do(http.MethodOptions, "/v1/instances", nil, ofShop("Access-Control-Request-Method", "DELETE")...).want(t, 405)
	s.do(http.MethodOptions, "/v1/instances", nil, ofShop()...).want(t, 405)
	s.do(http.MethodOptions, "/v1/ops/nothing/more", nil, ofShop("Access-Control-Request-Method", "GET")...).want(t, 404)
}
