package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/internal/streamtest"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

// A tenant has so many requests open, each of its credentials half as many, and its operators get in all the same.
func TestOpenRequestsAreLimited(t *testing.T) {
	s := newServer(t, func(c *api.Config) { c.Limits.Open = 4 })
	customer := func(actor string) []string { return []string{"Pawl-Actor", actor, "Pawl-Roles", "customer"} }
	var ends []context.CancelFunc
	for _, actor := range []string{"ann", "ann", "ben", "ben"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ends = append(ends, cancel)
		response, err := smallClient.Do(s.request(ctx, http.MethodGet, "/v1/events", nil, append(customer(actor), "Accept", "text/event-stream")...))
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equalf(t, 200, response.StatusCode, "%s: %s", actor, response.Status)
		if actor == "ann" && len(ends) == 2 { // the tenant has room, and ann has none
			s.get("/v1/workflows", customer("ann")...).wantProblem(t, 429, workflow.RateLimited)
			s.get("/v1/workflows", customer("ben")...).want(t, 200)
		}
	}
	for _, path := range []string{"/v1/workflows", "/v1/stream"} {
		refused := s.get(path, customer("cleo")...)
		refused.wantProblem(t, 429, workflow.RateLimited)
		assert.NotEqual(t, "", refused.header.Get("Retry-After"), "it does not say when")
	}
	s.get("/v1/workflows").want(t, 200) // for an operator
	s.get("/v1/workflows", append(customer("cleo"), "Pawl-Tenant", "other")...).want(t, 200)
	s.get("/healthz").want(t, 200)
	ends[0]()
	await.Eventually(t, "there is room again", func() bool { return s.get("/v1/workflows", customer("cleo")...).status == 200 })
}

// A reader that does not read ends by a deadline, of an answer of Pawl and of a route of the program.
func TestStalledReaderIsCut(t *testing.T) {
	const size = 8 * streamtest.SocketsHold
	failed := make(chan error, 4)
	large := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, err := w.Write(make([]byte, size))
		failed <- err
	})
	s := newServer(t, func(c *api.Config) {
		c.Limits.WriteTime = 300 * time.Millisecond
		c.Metrics, c.Routes = large, map[string]http.Handler{"GET /large": large}
	})
	for _, path := range []string{"/metrics", "/large"} {
		socket, err := streamtest.Dial(t.Context(), "tcp", s.url[len("http://"):])
		require.NoError(t, err)
		defer func() { _ = socket.Close() }()
		_, err = io.WriteString(socket, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		assert.ErrorIs(t, await.Receive(t, path+" ends", failed), os.ErrDeadlineExceeded, path)
		assert.Len(t, s.get(path).body, size, "a reader that reads gets all")
		assert.NoError(t, await.Receive(t, path+" is read", failed))
	}
}

// The same over HTTP/2, where it is one stream of a connection that others use.
func TestStalledReaderIsCut_HTTP2(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	s := newServer(t, func(c *api.Config) {
		c.Limits.WriteTime = 2 * time.Second
		c.Routes = map[string]http.Handler{"GET /large": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, 64<<20)) // more than a client takes before it is read
			failed <- err
		})}
	})
	over := httptest.NewUnstartedServer(s.api)
	over.EnableHTTP2 = true
	over.StartTLS()
	defer over.Close()
	get := func(path string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, over.URL+path, nil)
		require.NoError(t, err)
		response, err := over.Client().Do(r)
		require.NoError(t, err)
		return response
	}
	stalled := get("/large")
	defer stalled.Body.Close()
	err := await.Receive(t, "the stream ends", failed)
	assert.Truef(t, err != nil && stalled.ProtoMajor == 2, "%v, %s", err, stalled.Proto)
	other := get("/healthz")
	defer other.Body.Close()
	assert.Truef(t, other.StatusCode == 200 && other.ProtoMajor == 2, "%s %s", other.Proto, other.Status)
}
