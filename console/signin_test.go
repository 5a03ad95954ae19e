package console_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/auth/session"
	"github.com/pawlhq/pawl/auth/ticket"
	"github.com/pawlhq/pawl/console"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/chromium"
)

func TestSignInWithCredential(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	key := s.key("olga", "read")
	v := newVisitor(t, s.URL())
	p := v.get("/console/instances?workflow=claim").want(http.StatusSeeOther)
	assert.Equal(t, "/console/sign-in?next="+url.QueryEscape("/console/instances?workflow=claim"), p.location(), "it leads to")
	v.get(p.location()).want(200, `value="/console/instances?workflow=claim"`, `type="password"`)
	last := "x"
	if strings.HasSuffix(key, last) {
		last = "y"
	}
	for _, wrong := range []string{"", "nonsense", key[:len(key)-1] + last} {
		p := v.post("/console/sign-in", url.Values{"credential": {wrong}})
		p.want(http.StatusUnauthorized, `role="alert"`)
		assert.Empty(t, p.header.Values("Set-Cookie"), wrong)
		assert.NotContains(t, p.text, key)
	}
	p = v.post("/console/sign-in", url.Values{"credential": {" " + key + "\n"},
		"next": {"/console/instances?workflow=claim"}}).want(http.StatusSeeOther)
	assert.Equal(t, "/console/instances?workflow=claim", p.location(), "it leads to")
	cookie := p.header.Get("Set-Cookie")
	assert.Regexp(t, "^pawl_console=[^;]+; Path=/console/; Max-Age=3600; HttpOnly;( Secure;)? SameSite=Strict$", cookie)
	assert.NotContains(t, cookie, key[5:17])
	v.get("/console/instances?workflow=claim").want(200, "<bdi>olga</bdi> of <bdi>default</bdi>")
	p = v.fill("/console/sign-out").want(http.StatusSeeOther)
	assert.Contains(t, p.header.Get("Set-Cookie"), "Max-Age=0", "the cookie stays")
	v.get("/console/").want(http.StatusSeeOther)
}

func TestSignInRedirectsToConsole(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	key := s.key("olga", "read")
	for _, next := range []string{"https://evil.example/", "//evil.example", "/\\evil.example", "/v1/me", "/console/sign-out", "/console/\\x",
		"/consoles/", ""} {
		p := newVisitor(t, s.URL()).post("/console/sign-in", url.Values{"credential": {key}, "next": {next}}).want(http.StatusSeeOther)
		assert.Equalf(t, "/console/", p.location(), "%q leads to", next)
	}
	newVisitor(t, s.URL()).post("/console/sign-in", url.Values{"credential": {strings.Repeat("x", 20_000)}}).want(413, "longer than 16384 bytes")
	p := newVisitor(t, s.URL()).post("/console/sign-in", url.Values{"credential": {key}}, "Sec-Fetch-Site", "cross-site").want(403)
	assert.Empty(t, p.header.Get("Set-Cookie"), "a page of another site signs a user in")
}

// A session ends with its credential. After a link from another site the page is requested once more.
func TestSessionEndsWithCredential(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	boss := s.visitor(s.key("boss", everything))
	v := s.visitor(s.key("olga", "read"))
	ids := regexp.MustCompile(`/console/keys/([0-9A-Za-z]{12})/revoke`).FindAllStringSubmatch(boss.get("/console/keys").text, -1)
	require.Len(t, ids, 2)
	v.get("/console/").want(200)
	boss.get("/console/keys/"+ids[1][1]+"/revoke").want(200, "olga", "Every node rejects the key within a second")
	boss.fill("/console/keys/" + ids[1][1] + "/revoke").want(http.StatusSeeOther)
	p := v.get("/console/instances").want(http.StatusSeeOther)
	assert.Truef(t, strings.Contains(p.location(), "ended=1") && strings.Contains(p.header.Get("Set-Cookie"), "Max-Age=0"),
		"%s, %s", p.location(), p.header.Get("Set-Cookie"))
	stranger := newVisitor(t, s.URL())
	stranger.get("/console/instances?workflow=claim&state=filed", "Sec-Fetch-Site", "cross-site").
		want(200, `http-equiv="refresh" content="0;url=/console/instances?workflow=claim&amp;state=filed"`)
	stranger.get("/console/instances", "Sec-Fetch-Site", "same-origin").want(http.StatusSeeOther)
	v.get("/console/", "Cookie", "pawl_console=nonsense").want(http.StatusSeeOther)
}

// Without authentication local users choose their name, but forged forms are still rejected.
func TestSignIn_WithoutAuthentication(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(c *service.Config) { c.Auth.Keys = false })
	v := newVisitor(t, s.URL())
	v.get("/console/").want(200, "<bdi>local</bdi> of <bdi>default</bdi>")
	id := s.filed("A-1", 10).String()
	v.fill("/console/instances/" + id + "/do/approve").want(http.StatusSeeOther)
	v.post("/console/instances/"+id+"/do/note", url.Values{"p/note": {"x"}}).want(http.StatusForbidden)
	newVisitor(t, s.URL()).post("/console/instances/"+id+"/do/note", url.Values{"p/note": {"x"}}).want(http.StatusSeeOther) // to sign in
	v.post("/console/sign-in", url.Values{"actor": {"ann"}, "roles": {"clerk"}}).want(http.StatusSeeOther)
	v.get("/console/instances/"+id).want(200, "<bdi>ann</bdi> of <bdi>default</bdi>")
	p := v.get("/console/stuck")
	assert.Equal(t, 403, p.status, "who has not the role of operators sees what is stuck")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/console/", nil)
	require.NoError(t, err)
	r.Host = "rebound.example"
	p = v.send(r)
	assert.Equal(t, http.StatusForbidden, p.status, "another host is served")
}

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
func TestPollingKeepsSession(t *testing.T) {
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

func published(c *service.Config) { c.Network.PublicURL = "https://pawl.example.com/a/pawl" }

// A browser follows pages, and sees the interface, below the prefix.
func TestBrowserUsesPrefix(t *testing.T) {
	t.Parallel()
	s := newStand(t, published, func(c *service.Config) { c.Auth.Keys = false })
	id := s.filed("A-1", 10)
	browser := chromium.Start(t)
	p := browser.Open(s.URL() + "/a/pawl/console/instances/" + id.String())
	p.WaitText("#live", "live")
	s.do(id, "note", "ann", `{"note":"seen below the prefix"}`)
	await.Eventually(t, "the page shows the note", func() bool { return strings.Contains(p.Text("main"), "seen below the prefix") })
	docs := browser.Open(s.URL() + "/a/pawl/docs")
	await.Eventually(t, "the interface is shown", func() bool {
		return strings.Contains(chromium.Eval[string](docs, `document.querySelector('rapi-doc')?.shadowRoot?.textContent ?? ''`), "/claim/file")
	})
	assert.Empty(t, append(p.Seen().Problems, docs.Seen().Problems...))
}
