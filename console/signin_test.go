package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
)

func TestOneSignsInWithACredential(t *testing.T) {
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
		assert.Truef(t, p.status == http.StatusUnauthorized && strings.Contains(p.text, `role="alert"`) &&
			len(p.header.Values("Set-Cookie")) == 0 && !strings.Contains(p.text, key),
			"%q is answered with %d %s", wrong, p.status, p.text)
	}
	p = v.post("/console/sign-in", url.Values{"credential": {" " + key + "\n"},
		"next": {"/console/instances?workflow=claim"}}).want(http.StatusSeeOther)
	assert.Equal(t, "/console/instances?workflow=claim", p.location(), "it leads to")
	cookie := p.header.Get("Set-Cookie")
	for _, want := range []string{"pawl_console=", "Path=/console/", "HttpOnly", "SameSite=Strict", "Max-Age=3600"} {
		assert.Contains(t, cookie, want, "the cookie has no")
	}
	assert.Truef(t, !strings.Contains(cookie, key) && !strings.Contains(cookie, key[5:17]), "the cookie shows the key: %s", cookie)
	v.get("/console/instances?workflow=claim").want(200, "<bdi>olga</bdi> of <bdi>default</bdi>")
	p = v.fill("/console/sign-out").want(http.StatusSeeOther)
	assert.Contains(t, p.header.Get("Set-Cookie"), "Max-Age=0", "the cookie stays")
	v.get("/console/").want(http.StatusSeeOther)
}

func TestSignInLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	key := s.key("olga", "read")
	for _, next := range []string{"https://evil.example/", "//evil.example", "/\\evil.example", "/v1/me", "/console/sign-out", "/console/\\x",
		"/consoles/", ""} {
		p := newVisitor(t, s.URL()).post("/console/sign-in", url.Values{"credential": {key}, "next": {next}}).want(http.StatusSeeOther)
		assert.Equalf(t, "/console/", p.location(), "%q leads to", next)
	}
}

// A session ends with its credential, and a visitor who follows a link of another site confirms the request once.
func TestASessionEndsWithItsCredential(t *testing.T) {
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

func TestAFormOfElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	key := s.key("boss", everything)
	v := s.visitor(key)
	id := s.filed("A-1", 10).String()
	path := "/console/instances/" + id + "/do/note"
	good := v.form("p/note", "x")
	without := url.Values{"_key": good["_key"], "p/note": {"x"}}
	other := s.visitor(key).form("p/note", "x") // of another session of the same user
	for name, c := range map[string]struct {
		form   url.Values
		header []string
	}{
		"another site":             {good, []string{"Sec-Fetch-Site", "cross-site"}},
		"another port":             {good, []string{"Sec-Fetch-Site", "same-site"}},
		"an old browser elsewhere": {good, []string{"Sec-Fetch-Site", "", "Origin", "http://evil.example"}},
		"no origin":                {good, []string{"Sec-Fetch-Site", "", "Origin", "null"}},
		"who says nothing":         {good, []string{"Sec-Fetch-Site", ""}},
		"no token":                 {without, nil},
		"another one's token":      {other, nil},
	} {
		p := v.post(path, c.form, c.header...)
		assert.Truef(t, p.status == http.StatusForbidden && strings.Contains(p.text, "not sent by a page of this console"),
			"%s: %d %s", name, p.status, p.text)
	}
	newVisitor(t, s.URL()).post("/console/sign-in", url.Values{"credential": {strings.Repeat("x", 20_000)}}).want(413, "longer than 16384 bytes")
	p := newVisitor(t, s.URL()).post("/console/sign-in", url.Values{"credential": {key}}, "Sec-Fetch-Site",
		"cross-site")
	assert.Truef(t, p.status == 403 && p.header.Get("Set-Cookie") == "", "a page of elsewhere signs somebody in: %d", p.status)
	head, err := s.Engine().Read().Head(t.Context(), "default")
	assert.Truef(t, err == nil && head == 1, "a forged form did something: %d, %v", head, err)
	v.post(path, good, "Sec-Fetch-Site", "", "Origin", s.URL()).want(http.StatusSeeOther)
}

// A form that is sent twice has one effect.
func TestAFormThatIsSentTwiceHasOneEffect(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	v := s.visitor(s.key("boss", everything))
	id := s.filed("A-1", 10).String()
	form := v.form("p/note", "once")
	for range 2 {
		p := v.post("/console/instances/"+id+"/do/note", form).want(http.StatusSeeOther)
		assert.Equal(t, "/console/instances/"+id+"?done=2", p.location(), "it leads to")
	}
	head, err := s.Engine().Read().Head(t.Context(), "default")
	assert.Truef(t, err == nil && head == 2, "the log is at %d, %v", head, err)
}

// Without authentication local visitors choose their own actor; pages of other origins still cannot act.
func TestWithoutAuthenticationOneIsBelieved(t *testing.T) {
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
