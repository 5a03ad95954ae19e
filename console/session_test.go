package console_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth/session"
	"github.com/pawlhq/pawl/auth/ticket"
	"github.com/pawlhq/pawl/console"
)

// clockedKeys are one key, with a clock that a test moves.
type clockedKeys struct {
	key ticket.Key
	now atomic.Int64 // nanoseconds since 1970
}

func (k *clockedKeys) Newest(context.Context) (*ticket.Key, error)       { return &k.key, nil }
func (k *clockedKeys) Find(context.Context, string) (*ticket.Key, error) { return &k.key, nil }
func (k *clockedKeys) Now() time.Time                                    { return time.Unix(0, k.now.Load()) }

// A page that is looked at is asked for again by its script, which is all that is needed to stay signed in: an hour without it, and one
// is signed out; twelve hours, and one is in any case. Not every poll seals the session anew.
func TestAPageThatIsLookedAtCountsAsUsed(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	node, err := url.Parse(s.URL())
	require.NoError(t, err)
	keys := &clockedKeys{key: ticket.Key{ID: uuid.NewString(), Secret: bytes.Repeat([]byte{1}, 32)}}
	keys.now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	pages, err := console.New(console.Config{API: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(node) }},
		Sessions: session.New(keys)})
	require.NoError(t, err)
	mux := http.NewServeMux()
	for pattern, h := range pages.Routes() {
		mux.Handle(pattern, h)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	credential := s.key("olga", "read stream")
	later := func(d time.Duration) { keys.now.Add(int64(d)) }
	signedIn := func() *visitor {
		v := newVisitor(t, server.URL)
		v.post("/console/sign-in", url.Values{"credential": {credential}}).want(http.StatusSeeOther)
		return v
	}

	v := signedIn()
	var tag string
	for minutes := 0; minutes < 12*60; minutes += 50 { // each time what the script asks, and a minute after it once more
		p := v.get("/console/instances", "If-None-Match", tag)
		require.Falsef(t, p.status != http.StatusOK && p.status != http.StatusNotModified, "%d after %d minutes", p.status, minutes)
		renewed := p.header.Get("Set-Cookie") != ""
		assert.Equalf(t, (minutes > 0), renewed, "after %d minutes the session was sealed anew", minutes)
		tag = p.header.Get("ETag")
		later(time.Minute)
		if p := v.get("/console/instances", "If-None-Match", tag); p.header.Get("Set-Cookie") != "" {
			t.Error("the session is sealed anew by every poll")
		}
		later(49 * time.Minute)
	}
	v.get("/console/instances").want(http.StatusSeeOther) // 750 minutes after the first, and 50 after the last that was answered
	unused := signedIn()
	later(session.Idle + time.Second)
	unused.get("/console/instances").want(http.StatusSeeOther)
}
