package api_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/workflow"
)

// What docs/protocol.md says of pages of other origins, as browsers ask for them.
func TestForeignOrigin(t *testing.T) {
	s := newServer(t)
	id := s.packed("1")
	before := s.rows()
	for name, foreign := range map[string][]string{
		"another site":    {"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"},
		"another port":    {"Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"},
		"an old browser":  {"Origin", "https://evil.example"},
		"without a name":  {"Origin", "null", "Sec-Fetch-Site", "cross-site"},
		"only that it is": {"Sec-Fetch-Site", "cross-site"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
				path := map[string]string{http.MethodPost: "/v1/workflows/parcel/pack", http.MethodPut: "/v1/ops/paused/parcel",
					http.MethodDelete: "/v1/commands/parcel:pack/k"}[method]
				headers := append([]string{"Content-Type", "application/json", "Idempotency-Key", "k"}, foreign...)
				s.do(method, path, []byte(`{}`), headers...).wantProblem(t, 403, workflow.Forbidden)
			}
			for _, path := range []string{"/v1/instances", "/v1/instances/" + id.String(), "/v1/events", "/healthz"} {
				got := s.get(path, foreign...)
				got.want(t, 200)
				unshared(t, got.header)
			}
			stream(t, s, foreign)
			preflight := s.do(http.MethodOptions, "/v1/workflows/parcel/pack", nil,
				append([]string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "idempotency-key"}, foreign...)...)
			preflight.wantProblem(t, 405, workflow.MethodNotAllowed)
			unshared(t, preflight.header)
		})
	}
	s.get("/v1/stream", append(slices.Clone(handshake), "Origin", "https://evil.example")...).wantProblem(t, 403, workflow.Forbidden)
	if after := s.rows(); after["command"] != before["command"] || after["paused"] != before["paused"] {
		t.Errorf("a foreign page has changed something: %v, %v", before, after)
	}
	s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, "Origin", s.url, "Sec-Fetch-Site", "same-origin").want(t, 201)
}

// stream opens server-sent events for a page of another origin.
func stream(t *testing.T, s *server, foreign []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/events", nil)
	require.NoError(t, err)
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(foreign); i += 2 {
		r.Header.Set(foreign[i], foreign[i+1])
	}
	response, err := smallClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Truef(t, response.StatusCode == 200 && response.Header.Get("Content-Type") == "text/event-stream",
		"%s, %s", response.Status, response.Header.Get("Content-Type"))
	unshared(t, response.Header)
}

// unshared checks that a browser keeps an answer from pages of other origins.
func unshared(t *testing.T, h http.Header) {
	t.Helper()
	for name := range h {
		assert.Falsef(t, strings.HasPrefix(name, "Access-Control-"), "%s: %s", name, h.Get(name))
	}
	assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), "a browser may take it for a script")
}
