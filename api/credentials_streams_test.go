package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

// openStream asks for an event stream.
func (g *guarded) openStream(t *testing.T, r *api.Route, headers ...string) *http.Response {
	t.Helper()
	response, err := http.DefaultClient.Do(g.fill(r, append(headers, "Accept", "text/event-stream")...))
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// firstData is the first data of an event stream.
func firstData(t *testing.T, response *http.Response) string {
	t.Helper()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
			return data
		}
	}
	t.Error("the stream has ended without data")
	return ""
}

// streaming are what is streamed as events, with whether it is one thing that has a name, and so is hidden from others.
var streaming = map[string]bool{"GET /v1/events": false, "GET /v1/commands/{scope}/{key...}": true}

func TestEventStreamsShowGrantedEvents(t *testing.T) {
	g := newGuarded(t)
	other := []string{"Authorization", "Bearer " + g.token("other", auth.All().String())}
	for _, r := range api.Routes() {
		if !slices.ContainsFunc(r.Answers, func(a api.Answer) bool { return a.Media == "text/event-stream" }) {
			continue
		}
		pattern := r.Method + " " + r.Path
		hides, listed := streaming[pattern]
		if !listed {
			t.Errorf("%s has no entry", pattern)
			continue
		}
		t.Run(pattern, func(t *testing.T) {
			response := g.openStream(t, &r, g.with(string(r.Grant)+" stream")...)
			if data := firstData(t, response); response.StatusCode != 200 || !strings.Contains(data, g.instance.String()) {
				t.Errorf("the right grants: %d %s", response.StatusCode, data)
			}
			for name, headers := range map[string][]string{"another tenant": other,
				"a grant for another workflow": g.with("read:courier stream:courier")} {
				response := g.openStream(t, &r, headers...)
				switch {
				case hides:
					body, err := io.ReadAll(response.Body)
					assert.Truef(t, err == nil && response.StatusCode == 404 && !strings.Contains(string(body), g.instance.String()),
						"%s: %d %s", name, response.StatusCode, body)
				case name == "another tenant": // whose own is the first that he is told of
					id := g.packedBy(t, other...)
					if data := firstData(t, response); !strings.Contains(data, id) || strings.Contains(data, g.instance.String()) {
						t.Errorf("%s is told %s", name, data)
					}
				case response.StatusCode != 403:
					t.Errorf("%s: %d", name, response.StatusCode)
				}
			}
			for _, grants := range []string{string(r.Grant), "stream"} { // each alone
				if response := g.openStream(t, &r, g.with(grants)...); response.StatusCode != 403 {
					t.Errorf("%s alone: %d", grants, response.StatusCode)
				}
			}
		})
	}
}

// handshake requests a WebSocket, and returns the answer of a refused handshake.
func (g *guarded) handshake(t *testing.T, headers ...string) answer {
	t.Helper()
	_, response, err := g.upgrade(websocket.DefaultDialer, headers...)
	require.Error(t, err)
	require.NotNil(t, response, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return answer{response.StatusCode, response.Header, body}
}

// What is told on a WebSocket is what the caller may know, also of what happens later.
func TestWebSocketShowsGrantedEvents(t *testing.T) {
	g := newGuarded(t)
	narrow := g.dial(g.with("stream:parcel#L-1")...)
	narrow.send(`{"op":"subscribe","id":"all","after":0}`)
	narrow.send(`{"op":"subscribe","id":"flow","after":0,"filter":{"workflow":"parcel"}}`)
	narrow.send(`{"op":"subscribe","id":"other","after":0,"filter":{"workflow":"parcel","business_key":"L-2"}}`)
	for range 3 {
		m := narrow.next()
		assert.Truef(t, m.Op == "error" && m.Code == workflow.Forbidden, "%+v", m)
	}
	narrow.send(`{"op":"subscribe","id":"id","after":0,"filter":{"instance":"` + uuid.NewString() + `"}}`)
	m := narrow.next()
	assert.Truef(t, m.Op == "error" && m.Code == workflow.InstanceNotFound, "%+v", m)
	narrow.subscribe("own", "0", `{"workflow":"parcel","business_key":"L-1"}`)
	other := g.dial("Authorization", "Bearer "+g.token("other", auth.All().String()))
	other.subscribe("a", "0", `{}`)
	theirs := g.packedBy(t, "Authorization", "Bearer "+g.token("other", "submit"))
	g.packedBy(t, g.with("submit")...)
	g.post("/v1/instances/"+g.instance.String()+"/stamp", "s", `{}`, g.with("submit")...).want(t, 200)
	for c, want := range map[*wsClient]string{narrow: g.instance.String(), other: theirs} {
		seen := 0
		for last := ""; seen == 0 || c == narrow && !strings.Contains(last, "stamp"); {
			m := c.next()
			if m.Op != "event" {
				continue
			}
			last = string(m.Event)
			assert.Contains(t, last, want, "it is told of")
			seen++
		}
	}
}

// Requests continue while the keys rotate as providers rotate them: none is refused.
func TestProviderKeyRotation(t *testing.T) {
	idp := authtest.NewProvider(t)
	v, err := jwt.New(jwt.Config{Issuer: authtest.Issuer, Audience: []string{authtest.Audience}, Algorithms: []string{"ES256"},
		JWKS: idp.URL, Refresh: time.Millisecond})
	require.NoError(t, err)
	v.Start(t.Context())
	t.Cleanup(v.Stop)
	g := newWithoutEngine(t, func(c *api.Config) { c.Identify = api.Bearer(v.Verify) })
	var current atomic.Pointer[authtest.Key]
	current.Store(idp.Key)
	stop := make(chan struct{})
	var all sync.WaitGroup
	var asked [8]atomic.Int64
	for i := range asked {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				token := current.Load().Sign(t, authtest.Claims(map[string]any{"n": uuid.NewString()}))
				a := g.get("/v1/me", "Authorization", "Bearer "+token)
				assert.Equal(t, 200, a.status, a.body)
				asked[i].Add(1)
			}
		})
	}
	for i, old := 0, idp.Key; i < 10; i++ {
		next := authtest.NewKey(t, fmt.Sprint("key ", i), "ES256")
		idp.Publish(old, next)
		begun := v.Stats().Reads
		await.Eventually(t, "what is published is read", func() bool { return v.Stats().Reads >= begun+2 })
		current.Store(next)
		for i := range asked { // until nobody has a token of the old key any more
			before := asked[i].Load()
			await.Eventually(t, "everybody has asked again", func() bool { return asked[i].Load() > before+1 })
		}
		idp.Publish(next)
		old = next
	}
	close(stop)
	all.Wait()
}
