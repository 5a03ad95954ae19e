package service

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/chromium"
)

// front is a proxy in front of a service, which serves a page too and spoils requests for event streams.
type front struct {
	*httptest.Server

	mu      sync.Mutex
	spoiled []http.HandlerFunc // the answers to the next requests for the stream
	asked   []string           // the positions that were asked for
	cut     func()             // ends the newest stream
}

const followingPage = `<!doctype html><title>follow</title><script type="module">
import { follow } from '/follow.js';
window.seen = []; window.states = []; window.renewed = 0; window.resets = 0;
window.stop = follow({ address: '/v1/events?workflow=order', after: 0,
  onEvent: (e) => seen.push(e.subject), onState: (state, problem) => states.push(problem ? state + ' ' + problem.code : state),
  renew: async () => { renewed++; }, reset: async () => { resets++; return 0; } });
</script>`

func newFront(t *testing.T, node string) *front {
	t.Helper()
	module, err := os.ReadFile("../../examples/order/page/follow.js")
	require.NoError(t, err)
	to, err := url.Parse(node)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	f := &front{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(followingPage))
		case r.URL.Path == "/follow.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write(module)
		case strings.HasPrefix(r.URL.Path, "/v1/"):
			f.stream(proxy, w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

// stream spoils a request for an event stream, or forwards it until it is cut.
func (f *front) stream(proxy http.Handler, w http.ResponseWriter, r *http.Request) {
	ctx, cut := context.WithCancel(r.Context())
	defer cut()
	f.mu.Lock()
	f.asked = append(f.asked, r.URL.Query().Get("after"))
	serve := proxy.ServeHTTP
	if len(f.spoiled) > 0 {
		serve, f.spoiled = f.spoiled[0], f.spoiled[1:]
	} else {
		f.cut = cut
	}
	f.mu.Unlock()
	serve(w, r.WithContext(ctx))
}

// spoil ends the stream, and answers the next requests with these.
func (f *front) spoil(answers ...http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spoiled = answers
	f.cut()
}

// last is the position of the newest request.
func (f *front) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[len(f.asked)-1]
}

func problem(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"status":%d,"code":%q}`, status, code)
	}
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func credentialEnds(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "event: unauthorized\ndata: {}\n\n")
}

// The example module reconnects after each answer that closes an EventSource.
func TestPageOutlivesClosedEventSource(t *testing.T) {
	t.Parallel()
	s := service(t)
	f := newFront(t, s.URL())
	p := chromium.Start(t).Open(f.URL + "/")
	var want []string
	place := func(customer string) {
		t.Helper()
		body := `{"customer":"` + customer + `","cart":"1","total":1,"currency":"EUR"}`
		status, text := send(t, s, "POST", "/v1/workflows/order/place", "", body, "Idempotency-Key", customer)
		require.Equal(t, 201, status, text)
		want = append(want, customer+":1")
		await.Eventually(t, customer+" is seen", func() bool {
			return slices.Contains(chromium.Eval[[]string](p, "seen"), customer+":1")
		})
	}
	place("first")
	for _, c := range []struct {
		name    string
		answers []http.HandlerFunc
		after   string
		counts  [2]int // how often a ticket was renewed, and the state read again
	}{
		{"cut", nil, "0", [2]int{0, 0}}, // by itself, with Last-Event-ID
		{"proxy", []http.HandlerFunc{problem(502, ""), problem(502, "")}, "2", [2]int{0, 0}},
		{"stops", []http.HandlerFunc{problem(503, "shutting_down"), problem(503, "shutting_down"), problem(503, "")}, "3", [2]int{0, 0}},
		{"network", []http.HandlerFunc{problem(504, ""), hangUp}, "4", [2]int{0, 0}},
		{"many", []http.HandlerFunc{problem(429, "rate_limited"), problem(429, "rate_limited")}, "5", [2]int{0, 0}},
		{"refused", []http.HandlerFunc{problem(401, "unauthorized"), problem(401, "unauthorized")}, "6", [2]int{1, 0}},
		{"ended", []http.HandlerFunc{credentialEnds, problem(401, "unauthorized")}, "7", [2]int{2, 0}},
		{"gone", []http.HandlerFunc{problem(410, "events_gone"), problem(410, "events_gone")}, "0", [2]int{2, 1}},
		{"restored", []http.HandlerFunc{problem(400, "invalid_request"), problem(400, "invalid_request")}, "0", [2]int{2, 2}},
	} {
		f.spoil(c.answers...)
		place(c.name)
		assert.Equalf(t, c.after, f.last(), "%s: it goes on after", c.name)
		assert.Equal(t, c.counts, chromium.Eval[[2]int](p, "[renewed, resets]"), c.name)
	}
	seen := chromium.Eval[[]string](p, "[...new Set(seen)]")
	assert.Truef(t, slices.Equal(seen, want), "it has seen %v, not %v", seen, want)
	f.spoil(problem(403, "forbidden"), problem(403, "forbidden"))
	await.Eventually(t, "it stops", func() bool { return chromium.Eval[string](p, "states.at(-1)") == "stopped forbidden" })
}
