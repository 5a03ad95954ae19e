package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/app/service"
)

func TestOneSignsInWithACredential(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	key := s.key("olga", "read")
	v := newVisitor(t, s.URL())
	p := v.get("/console/instances?workflow=claim").want(http.StatusSeeOther)
	if to := p.location(); to != "/console/sign-in?next="+url.QueryEscape("/console/instances?workflow=claim") {
		t.Errorf("it leads to %s", to)
	}
	v.get(p.location()).want(200, `value="/console/instances?workflow=claim"`, `type="password"`)
	last := "x"
	if strings.HasSuffix(key, last) {
		last = "y"
	}
	for _, wrong := range []string{"", "nonsense", key[:len(key)-1] + last} {
		p := v.post("/console/sign-in", url.Values{"credential": {wrong}})
		if p.status != http.StatusUnauthorized || !strings.Contains(p.text, `role="alert"`) || len(p.header.Values("Set-Cookie")) != 0 ||
			strings.Contains(p.text, key) {
			t.Errorf("%q is answered with %d %s", wrong, p.status, p.text)
		}
	}
	p = v.post("/console/sign-in", url.Values{"credential": {" " + key + "\n"},
		"next": {"/console/instances?workflow=claim"}}).want(http.StatusSeeOther)
	if to := p.location(); to != "/console/instances?workflow=claim" {
		t.Errorf("it leads to %s", to)
	}
	cookie := p.header.Get("Set-Cookie")
	for _, want := range []string{"pawl_console=", "Path=/console/", "HttpOnly", "SameSite=Strict", "Max-Age=3600"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie has no %q: %s", want, cookie)
		}
	}
	if strings.Contains(cookie, key) || strings.Contains(cookie, key[5:17]) {
		t.Errorf("the cookie shows the key: %s", cookie)
	}
	v.get("/console/instances?workflow=claim").want(200, "<bdi>olga</bdi> of <bdi>default</bdi>")
	p = v.fill("/console/sign-out").want(http.StatusSeeOther)
	if !strings.Contains(p.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("the cookie stays: %s", p.header.Get("Set-Cookie"))
	}
	v.get("/console/").want(http.StatusSeeOther)
}

func TestSignInLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	key := s.key("olga", "read")
	for _, next := range []string{"https://evil.example/", "//evil.example", "/\\evil.example", "/v1/me", "/console/sign-out", "/console/\\x",
		"/consoles/", ""} {
		p := newVisitor(t, s.URL()).post("/console/sign-in", url.Values{"credential": {key}, "next": {next}}).want(http.StatusSeeOther)
		if p.location() != "/console/" {
			t.Errorf("%q leads to %s", next, p.location())
		}
	}
}

// A session ends with its credential, and somebody who follows a link of another site is asked for the page once more.
func TestASessionEndsWithItsCredential(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	boss := s.visitor(s.key("boss", everything))
	v := s.visitor(s.key("olga", "read"))
	ids := regexp.MustCompile(`/console/keys/([0-9A-Za-z]{12})/revoke`).FindAllStringSubmatch(boss.get("/console/keys").text, -1)
	if len(ids) != 2 {
		t.Fatalf("%q", ids)
	}
	v.get("/console/").want(200)
	boss.get("/console/keys/"+ids[1][1]+"/revoke").want(200, "olga", "Every node refuses the key within a second")
	boss.fill("/console/keys/" + ids[1][1] + "/revoke").want(http.StatusSeeOther)
	p := v.get("/console/instances").want(http.StatusSeeOther)
	if !strings.Contains(p.location(), "ended=1") || !strings.Contains(p.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("%s, %s", p.location(), p.header.Get("Set-Cookie"))
	}
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
		if p.status != http.StatusForbidden || !strings.Contains(p.text, "not from a page of this console") {
			t.Errorf("%s: %d %s", name, p.status, p.text)
		}
	}
	newVisitor(t, s.URL()).post("/console/sign-in", url.Values{"credential": {strings.Repeat("x", 20_000)}}).want(413, "more than 16384 bytes")
	if p := newVisitor(t, s.URL()).post("/console/sign-in", url.Values{"credential": {key}}, "Sec-Fetch-Site",
		"cross-site"); p.status != 403 || p.header.Get("Set-Cookie") != "" {
		t.Errorf("a page of elsewhere signs somebody in: %d", p.status)
	}
	if head, err := s.Engine().Read().Head(t.Context(), "default"); err != nil || head != 1 {
		t.Errorf("a forged form did something: %d, %v", head, err)
	}
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
		if p := v.post("/console/instances/"+id+"/do/note", form).want(http.StatusSeeOther); p.location() != "/console/instances/"+id+"?done=2" {
			t.Errorf("it leads to %s", p.location())
		}
	}
	if head, err := s.Engine().Read().Head(t.Context(), "default"); err != nil || head != 2 {
		t.Errorf("the log is at %d, %v", head, err)
	}
}

// Without authentication whoever is on this machine is believed, and may call himself what he likes; pages of elsewhere still do nothing.
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
	if p := v.get("/console/stuck"); p.status != 403 {
		t.Errorf("who has not the role of operators sees what is stuck: %d", p.status)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/console/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "rebound.example"
	if p := v.send(r); p.status != http.StatusForbidden {
		t.Errorf("another host is served: %d", p.status)
	}
}
