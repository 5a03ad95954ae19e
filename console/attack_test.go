package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/console"
)

// fill replaces the wildcards of a pattern.
func fill(pattern, id, workflow, transition, sink, key, action string) string {
	return strings.NewReplacer("{$}", "", "{id}", id, "{workflow}", workflow, "{transition}", transition, "{sink}", sink, "{key}", key,
		"{action}", action).Replace(pattern)
}

// Forms of other sites, and forms with a wrong token or none, are rejected.
func TestActionsRejectForeignForms(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	key := s.key("boss", everything)
	v := s.visitor(key)
	for name, c := range map[string]struct {
		form   url.Values
		header []string
	}{
		"another site":          {v.form(), []string{"Sec-Fetch-Site", "cross-site"}},
		"another port":          {v.form(), []string{"Sec-Fetch-Site", "same-site"}},
		"who types an address":  {v.form(), []string{"Sec-Fetch-Site", "none"}},
		"neither header":        {v.form(), []string{"Sec-Fetch-Site", ""}},
		"no origin":             {v.form(), []string{"Sec-Fetch-Site", "", "Origin", "null"}},
		"an origin that begins": {v.form(), []string{"Sec-Fetch-Site", "", "Origin", s.URL() + ".evil.example"}},
		"no token":              {url.Values{"_key": {uuid.NewString()}}, nil},
		"an empty token":        {url.Values{"_token": {""}}, nil},
		"another one's token":   {s.visitor(key).form(), nil},
		"a token in the query":  {url.Values{}, nil},
	} {
		for _, path := range console.Actions() {
			path = "/console" + fill(path, uuid.NewString(), "claim", "note", "books", "aaaaaaaaaaaa", "retry")
			if name == "a token in the query" {
				path += "?" + url.Values{"_token": {v.token()}}.Encode()
			}
			p := v.post(path, c.form, c.header...)
			assert.Equal(t, http.StatusForbidden, p.status, name, path)
			assert.Contains(t, p.text, "not sent by a page of this console", name, path)
		}
	}
	form := v.form("reason", "r")
	v.post("/console/workflows/claim/pause", form, "Sec-Fetch-Site", "", "Origin", s.URL()).want(http.StatusSeeOther) // an old browser
	v.post("/console/workflows/claim/pause", form, "Content-Type", "multipart/form-data; boundary=x").want(http.StatusForbidden)
	v.post("/console/workflows/claim/pause", form, "Content-Type", "text/plain").want(http.StatusForbidden)
}

// Signing in replaces a cookie that an attacker has set in the browser.
func TestSignInReplacesForeignSession(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	attacker, victim := s.visitor(s.key("eve", "read")), newVisitor(t, s.URL())
	eves := attacker.cookie()
	p := victim.post("/console/sign-in", url.Values{"credential": {s.key("ann", "read")}}, "Cookie", "pawl_console="+
		eves).want(http.StatusSeeOther)
	assert.NotContains(t, p.header.Get("Set-Cookie"), eves)
	assert.NotEqual(t, attacker.token(), victim.token())
	victim.get("/console/me").want(200, "<bdi>ann</bdi>")
	attacker.get("/console/me").want(200, "<bdi>eve</bdi>")
}

// cookie is the text of the session.
func (v *visitor) cookie() string {
	v.t.Helper()
	at, err := url.Parse(v.origin + "/console/")
	require.NoError(v.t, err)
	cookies := v.client.Jar.Cookies(at)
	require.Len(v.t, cookies, 1)
	return cookies[0].Value
}

// hostile are values that no page expects of its address.
var hostile = []string{"", "..", ".", "../../v1/me", "%2e%2e", "\x00", "\xff\xfe", "<script>alert(1)</script>", strings.Repeat("a", 5000),
	uuid.Nil.String(), "-1",
	"9223372036854775808", "1e9", "null", "'; DROP TABLE pawl.instance; --", "\u202e", "//evil.example", "0000-01-01T00:00",
	"99999-01-01T00:00"}

// asked are the parameters that pages look at.
var asked = []string{"workflow", "state", "open", "business_key", "order", "cursor", "created_after", "created_before", "updated_after",
	"updated_before",
	"attr.who", "attr.", "version", "at", "upto", "done", "verify", "v", "scope", "key", "position", "status", "consumer", "message", "hash",
	"type",
	"instance", "can", "q", "action", "id", "raw", "next", "after", "limit"}

// Whatever is in an address, a page answers it, and it leads nowhere else.
func TestHostileAddresses(t *testing.T) {
	t.Parallel()
	s := newFullStand(t)
	v := s.visitor(s.key("boss", everything))
	id := s.filed("A-1", 10).String()
	check := func(path string) {
		p := v.get("/console" + path)
		assert.Less(t, p.status, 500, path)
		assert.NotContains(t, p.text, "ZgotmplZ", path)
		assert.NotContains(t, p.text, "<script>alert", path)
		if strings.HasPrefix(p.header.Get("Content-Type"), "text/html") && p.status/100 != 3 {
			assert.True(t, strings.HasPrefix(p.text, "<!doctype html>"), path)
		}
		assert.Regexp(t, "^(|/|/console/.*)$", p.location(), path)
	}
	values := hostile
	if testing.Short() { // make test-long tries each of them
		values = []string{"..", "\x00", "\xff\xfe", hostile[7], "9223372036854775808"}
	}
	for _, pattern := range console.Pages() {
		for _, value := range values {
			q := url.Values{}
			for _, name := range asked {
				q.Set(name, value)
			}
			if pattern == "/live" {
				q.Set("after", "x") // or it would stream
			}
			check(fill(pattern, id, "claim", "note", "books", "aaaaaaaaaaaa", "retry") + "?" + q.Encode())
			if strings.Contains(pattern, "{") && pattern != "/{$}" && value != "" {
				bad := url.PathEscape(value)
				check(fill(pattern, bad, bad, bad, bad, bad, bad))
			}
		}
	}
	for _, name := range asked {
		if testing.Short() {
			break
		}
		for _, value := range values {
			of := url.Values{name: {value}}.Encode()
			for _, path := range []string{"/instances?workflow=claim&", "/instances/" + id + "?", "/log?", "/find?", "/me?"} {
				check(path + of)
			}
		}
	}
	v.get("/console/instances?" + strings.Repeat("state=x&", 20_000))
	v.get("/console/").want(200)
}

// A form that is larger than any payload is refused before it is looked at.
func TestFormSizeIsLimited(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	v := s.visitor(s.key("boss", everything))
	v.fill("/console/workflows/claim/do/file", "p/number", strings.Repeat("x", 5<<20)).want(http.StatusRequestEntityTooLarge, `role="alert"`)
	form := v.form("p/number", "N", "p/who", "w", "p/amount", "1")
	for range 100_000 {
		form["id"] = append(form["id"], "")
	}
	p := v.post("/console/workflows/claim/do/file", form)
	assert.Truef(t, p.status < 500, "many fields are answered with %d", p.status)
	form = v.form("action", "pause")
	for range 5000 {
		form["id"] = append(form["id"], uuid.NewString())
	}
	v.post("/console/bulk", form).want(http.StatusBadRequest, "choose 1 to 100")
}

// Who may not stream has pages that stay as they are.
func TestPagesWithoutStreamGrant(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	id := s.filed("A-1", 10).String()
	v := s.visitor(s.key("ron", "read operate"))
	for _, path := range []string{"/", "/instances?workflow=claim", "/instances/" + id, "/log"} {
		assert.NotContainsf(t, v.get("/console"+path).want(200).text, "data-live", "%s follows", path)
	}
	v.get("/console/live?after=0").want(http.StatusForbidden)
	s.visitor(s.key("boss", everything)).get("/console/live?after=0", "Sec-Fetch-Site", "same-site").want(http.StatusForbidden)
	newVisitor(t, s.URL()).get("/console/live?after=0").want(http.StatusSeeOther)
	verified := s.visitor(s.key("boss", everything)).get("/console/instances/"+id+"?verify=1").want(200, "is intact")
	assert.NotContains(t, verified.text, "data-live") // each transition would verify the chain again
}

// Nothing of one tenant is on a page of another, whatever its address names.
func TestOtherTenantsAreHidden(t *testing.T) {
	t.Parallel()
	s := newFullStand(t)
	addresses := s.addresses()
	acme := s.visitor(s.keyOf("acme", "boss", everything, "boss"))
	for _, path := range addresses {
		p := acme.get("/console" + path)
		assert.Less(t, p.status, 500, path)
		assert.NotRegexp(t, "A-2|A-&lt;1&gt;|of <bdi>default", p.text, path)
		if strings.Contains(path, "/instances/") {
			assert.Equal(t, http.StatusNotFound, p.status, path)
		}
	}
	id := s.filed("A-3", 10).String()
	acme.fill("/console/instances/"+id+"/do/note", "p/note", "x").want(http.StatusNotFound)
	acme.fill("/console/instances/"+id+"/pause", "reason", "r").want(http.StatusNotFound)
	acme.fill("/console/bulk", "action", "do note", "id", id, "payload", `{"note":"x"}`).want(200, "Done with 0 of 1")
}
