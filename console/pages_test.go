package console_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// newFullStand is a node that has something on every page.
func newFullStand(t *testing.T) *stand {
	t.Helper()
	return newStand(t, func(c *service.Config) {
		c.Sinks, c.Workflows = []relay.Sink{{Name: "books", To: &receiver{}}}, append(c.Workflows, parcels()...)
	})
}

// addresses are those of every page of a full stand.
func (s *stand) addresses() []string {
	s.t.Helper()
	s.deadMessage("m-<1>")
	s.deadMessage("m-" + strings.Repeat("2", 200))
	require.NoError(s.t, s.Engine().Admin().PauseWorkflow(s.t.Context(), "default", "order", "olga", "nobody is here"))
	id := s.stuck("A-<1>").String()
	s.filed("A-2", 7)
	c, err := s.Engine().Read().Case(s.t.Context(), "", uuid.MustParse(id))
	require.NoError(s.t, err)
	s.awaitDead()
	s.operate(transitions.Pause, s.filed("A-3", 7), "the <office> burns")
	scope, key := c.InFlight[0].Scope, c.InFlight[0].Key
	ref := "?" + url.Values{"scope": {scope}, "key": {key}}.Encode()
	return []string{"/", "/instances", "/instances?workflow=claim&attr.who=ann&state=paying&created_after=2020-01-01T00%3A00",
		"/instances?order=updated",
		"/find?q=nobody", "/instances/" + id, "/instances/" + id + "?version=1", "/instances/" + id + "?done=2&verify=1", "/instances/" + id +
			"/do/note",
		"/instances/" + id + "/do/note?raw=1", "/instances/" + id + "/pause", "/instances/" + id + "/resume", "/bulk?action=do+note&id=" + id,
		"/bulk?action=pause&id=" + id, "/workflows", "/workflows/claim",
		"/workflows/claim/do/file", "/workflows/claim/pause", "/commands" + ref, "/commands", "/commands?status=stuck&workflow=claim", "/paused",
		"/migrations/new?workflow=parcel&from=1&to=2", "/migrations/new?workflow=parcel&from=1&to=2&try=1",
		"/stuck", "/stuck/retry" + ref, "/stuck/resolve" + ref,
		"/stuck/abandon" + ref,
		"/sinks", "/sinks/books", "/sinks/books/redrive?position=1",
		"/sinks/books/move", "/migrations", "/migrations/" + s.migration() + "/stop", "/messages",
		"/messages/discard?consumer=payments&message=m&hash=0", "/log", "/log?workflow=claim&upto=2", "/keys",
		"/keys/new", "/me", "/me?can=submit:claim/note", "/nowhere"}
}

func TestAllAnswersHaveSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := newFullStand(t)
	v, stranger := s.visitor(s.key("boss", everything, "boss")), newVisitor(t, s.URL())
	check := func(path string, p *page) {
		t.Helper()
		policy := p.header.Get("Content-Security-Policy")
		assert.Regexp(t, "^default-src 'none';.*frame-ancestors 'none'", policy, path)
		assert.Equal(t, "nosniff", p.header.Get("X-Content-Type-Options"), path)
		assert.Empty(t, p.header.Get("Access-Control-Allow-Origin"), path)
	}
	addresses := s.addresses()
	for _, path := range append(addresses, "/sign-in", "/sign-in?ended=1") {
		p := v.get("/console" + path)
		check(path, p)
		assert.NotContains(t, p.header.Get("Content-Security-Policy"), "unsafe", path)
		assert.Equal(t, path == "/nowhere", p.status == http.StatusNotFound, path)
		for name, value := range map[string]string{"Referrer-Policy": "same-origin", "Cache-Control": "no-store",
			"Content-Type": "text/html; charset=utf-8"} {
			assert.Equal(t, value, p.header.Get(name), path)
		}
		assert.NotRegexp(t, `<script[^>]*>[^<]|<style|\sstyle\s*=|\son[a-z]+\s*=|ZgotmplZ`, p.text, path)
		assert.True(t, strings.HasPrefix(p.text, "<!doctype html>\n<html lang=\"en\">"), path)
		assert.Equal(t, 1, strings.Count(p.text, "<h1"), path)
	}
	of := "/console/instances/" + s.filed("A-4", 10).String()
	for _, path := range []string{of + "/diagram?v=1", of + "/data", "/console/workflows/claim/diagram", "/console/static/console.js",
		"/console/static/none", "/console/find?q=A-4", "/console/live?after=x"} {
		check(path, v.get(path, "Origin", "https://evil.example"))
	}
	check("signed out", stranger.get(of))
	check("other site", stranger.get(of, "Sec-Fetch-Site", "cross-site"))
	check("form of another site", v.post(of+"/pause", url.Values{}, "Sec-Fetch-Site", "cross-site"))
	check("wrong credential", stranger.post("/console/sign-in", url.Values{"credential": {"x"}}))
}

func TestEmptyPages(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	v := s.visitor(s.key("boss", everything))
	unknown := uuid.NewString()
	for path, text := range map[string]string{
		"/instances/" + unknown: "there is no instance " + unknown, "/instances/x": "", "/workflows/x": "",
		"/workflows/claim/do/note": "no such transition",
		"/workflows/claim/do/x":    "", "/commands?scope=a&key=b": "", "/sinks/x": "there is no sink",
		"/stuck/eat?scope=a&key=b":  "no such action",
		"/keys/aaaaaaaaaaaa/revoke": "",
	} {
		p := v.get("/console" + path)
		assert.Contains(t, []int{404, 400}, p.status, path)
		assert.Contains(t, p.text, text, path)
		assert.Contains(t, p.text, `role="alert"`, path)
	}
	v.get("/console/static/nothing").want(404)
	assert.Equal(t, "/console/", v.get("/console").want(http.StatusPermanentRedirect).location())
	for _, query := range []string{"created_after=yesterday", "workflow=nothing", "open=perhaps", "cursor=x"} {
		p := v.get("/console/instances?" + query)
		assert.Equal(t, 4, p.status/100, query)
		assert.Regexp(t, `(?s)role="alert".*<form|<form.*role="alert"`, p.text, query)
	}
}

func TestFindByNumberAndID(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	v := s.visitor(s.key("boss", everything))
	id := s.filed("A/1 <ü>", 10).String()
	for _, q := range []string{"A/1 <ü>", "  A/1 <ü>\t", id, strings.ToUpper(id)} {
		p := v.get("/console/find?q=" + url.QueryEscape(q)).want(http.StatusSeeOther)
		assert.Equalf(t, "/console/instances/"+id, p.location(), "%q leads to", q)
	}
	v.get("/console/find?q=A-2").want(200, "There is no instance with this number")
	narrow := s.visitor(s.key("ann", "read:claim"))
	p := narrow.get("/console/find?q=" + url.QueryEscape("A/1 <ü>")).want(http.StatusSeeOther)
	assert.Equal(t, "/console/instances/"+id, p.location())
	narrow.get("/console/instances?workflow=claim").want(200, "A/1 &lt;ü&gt;")
	narrow.get("/console/").want(200)
	narrow.get("/console/instances").want(403, "<form")
}

func TestListPages(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	v := s.visitor(s.key("boss", everything))
	for n := range 60 {
		s.filed("L-"+string(rune('A'+n/26))+string(rune('A'+n%26)), 10)
	}
	next := regexp.MustCompile(`<a class="button" href="([^"]+)">Next page`)
	seen := map[string]bool{}
	path := "/console/instances?workflow=claim&state=filed"
	for path != "" {
		p := v.get(path).want(200)
		for _, found := range regexp.MustCompile(`<bdi>(L-..)</bdi>`).FindAllStringSubmatch(p.text, -1) {
			require.False(t, seen[found[1]], found[1])
			seen[found[1]] = true
		}
		if path = ""; next.MatchString(p.text) {
			path = strings.ReplaceAll(next.FindStringSubmatch(p.text)[1], "&amp;", "&")
		}
	}
	assert.Len(t, seen, 60)
}

// The console is where the program says, or nowhere.
func TestConsolePath(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	there := s.node(func(c *service.Config) { c.Console = "/ops/pages"; c.Auth.Keys = true })
	v := newVisitor(t, there.URL())
	v.get("/console/").want(404)
	v.get("/ops/pages/").want(http.StatusSeeOther)
	v.post("/ops/pages/sign-in", url.Values{"credential": {s.key("boss", everything)}}).want(http.StatusSeeOther)
	v.get("/ops/pages/").want(200, `href="/ops/pages/instances"`)
	none := s.node(func(c *service.Config) { c.Console = service.NoConsole })
	newVisitor(t, none.URL()).get("/console/").want(404)
	for _, path := range []string{"console", "/", "/Console", "/a//b", "/console/", "/v1", "/docs/x"} {
		c := service.Config{Workflows: []workflow.Source{claims(s.bank)}, Database: s.db, Address: "127.0.0.1:0", Console: path}
		_, err := service.Start(t.Context(), c)
		assert.Error(t, err, path)
	}
	clash := service.Config{Workflows: []workflow.Source{claims(s.bank)}, Database: s.db, Address: "127.0.0.1:0",
		Routes: func(*service.Service) map[string]http.Handler {
			return map[string]http.Handler{"GET /console/": http.NotFoundHandler()}
		}}
	_, err := service.Start(t.Context(), clash)
	assert.ErrorContains(t, err, "--console", "a program with routes there")
}

// All files that a browser loads have 150 kB, compressed.
func TestPageSize(t *testing.T) {
	var all bytes.Buffer
	w := gzip.NewWriter(&all)
	files, err := filepath.Glob("static/*")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 3)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		_, _ = w.Write(text)
	}
	require.NoError(t, w.Close())
	assert.LessOrEqual(t, all.Len(), 150_000)
}
