package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/console"
	"github.com/pawlhq/pawl/internal/testkit/await"
)

// identities are callers by what they may.
var identities = map[string]string{
	"reader":    "read stream",
	"submitter": "read submit",
	"noter":     "read:claim submit:claim/note",
	"operator":  "read submit operate",
	"chief":     "read submit act-as operate:all",
	"keeper":    "read keys",
	"nothing":   "stream",
}

// attempted is something that can be done in the console.
type attempted struct {
	name    string
	shown   string // the page that has the way to it
	link    string // that way
	path    string
	form    []string
	allowed []string // of the identities
}

// Without a grant there is no link to an operation, and its form is rejected.
func TestActionsNeedGrants(t *testing.T) {
	t.Parallel()
	s := newFullStand(t)
	list, robot, asked := s.attempts()
	visitors := map[string]*visitor{}
	for name, grants := range identities {
		visitors[name] = s.visitor(s.key(name, grants))
	}
	for _, a := range list {
		if a.name == "skip" {
			s.awaitDead() // again
		}
		for name, v := range visitors {
			if may := slices.Contains(a.allowed, name); a.link != "" {
				assert.Equalf(t, may, strings.Contains(v.get("/console"+a.shown).text, a.link), "%s sees the way to %s", name, a.name)
				page := v.get("/console" + a.path + "?" + queryOf(a.form))
				offered := strings.Contains(page.text, `<form method="post" action="/console`+a.path+`"`)
				assert.Falsef(t, offered && !may, "%s is offered to %s: %s", name, a.name, page.text)
			}
		}
		for name, v := range visitors {
			p := v.post("/console"+a.path, v.form(a.form...))
			refused := p.status == http.StatusForbidden || p.status == http.StatusNotFound || strings.Contains(p.text, "Done with 0 of 1")
			assert.NotEqualf(t, slices.Contains(a.allowed, name), refused,
				"%s: %s is answered with %d %s", name, a.name, p.status, p.text)
		}
	}
	wantEveryAction(t, list)
	await.Receive(t, "the bank is asked again", s.bank.asked) <- nil
	asked <- nil
	newVisitor(t, s.URL()).post("/console/sign-in", url.Values{"credential": {robot}}).want(http.StatusUnauthorized)
}

// attempts returns one attempt for each operation, the API key that one of them revokes, and the pending call of the bank.
func (s *stand) attempts() (list []attempted, robot string, asked chan<- error) {
	s.t.Helper()
	note, paused := s.filed("R-1", 10).String(), s.filed("R-2", 10).String()
	settled := func(number string, more ...string) []string {
		id := s.stuck(number)
		return append(append(s.flight(id), "reason", "r", "instance", id.String()), more...)
	}
	retried, resolved, abandoned := settled("R-3"), settled("R-4", "result", "7"), settled("R-5")
	calling := s.filed("R-6", 10)
	s.do(calling, "approve", "bob", `{}`)
	s.do(calling, "call", "bob", `{"note":""}`)
	asked = await.Receive(s.t, "the bank is asked", s.bank.asked)
	stopped := s.flight(calling)
	migration := s.migration()
	robot = s.key("robot", "read")
	key := strings.Split(robot, "_")[1]
	s.deadMessage("m-1")
	message := []string{"consumer", "payments", "message", "m-1", "hash", "none", "reason", "r"}
	s.awaitDead()
	submitters, operators := []string{"submitter", "operator", "chief"}, []string{"operator", "chief"}
	chief, noters := []string{"chief"}, append(slices.Clone(submitters), "noter")
	one := func(name, page, path string, form []string, allowed []string) attempted { // whose link is its path
		return attempted{name, page, "/console" + path + `"`, path, form, allowed}
	}
	of, robots := "/instances/", "/keys/"+key
	listed := "/instances?workflow=claim"
	return []attempted{
		one("begin", "/workflows/claim", "/workflows/claim/do/file", []string{"p/number", "N", "p/who", "w", "p/amount", "1"}, submitters),
		one("submit", of+note, of+note+"/do/note", []string{"p/note", "x"}, noters),
		one("try", of+note, of+note+"/do/note", []string{"p/note", "x", "do", "dry"}, noters),
		one("pause", of+paused, of+paused+"/pause", []string{"reason", "r"}, operators),
		one("resume", of+paused, of+paused+"/resume", []string{"reason", "r"}, operators),
		{"pause several", listed, `<option value="pause">`, "/bulk", []string{"action", "pause", "id", paused}, operators},
		{"resume several", listed, `<option value="resume">`, "/bulk", []string{"action", "resume", "id", paused}, operators},
		{"submit several", listed, `<option value="do note">`, "/bulk", []string{"action", "do note", "id", note, "payload", `{"note":"x"}`},
			noters},
		one("pause a workflow", "/workflows/order", "/workflows/order/pause", []string{"reason", "r"}, operators),
		one("resume a workflow", "/workflows/order", "/workflows/order/resume", nil, operators),
		{"begin a migration", "/migrations", `"/console/migrations/new?`, "/migrations/new",
			[]string{"workflow", "parcel", "from", "1", "to", "2", "try", "1", "reason", "r"}, chief},
		one("stop a migration", "/migrations", "/migrations/"+migration+"/stop", nil, chief),
		{"stop", "/commands?" + queryOf(stopped), `action="/console/commands/cancel"`, "/commands/cancel", stopped, submitters},
		{"retry", "/stuck", "/console/stuck/retry?", "/stuck/retry", retried, operators},
		{"resolve", "/stuck", "/console/stuck/resolve?", "/stuck/resolve", resolved, operators},
		{"abandon", "/stuck", "/console/stuck/abandon?", "/stuck/abandon", abandoned, operators},
		one("move", "/sinks/books", "/sinks/books/move", []string{"position", "1", "reason", "r"}, operators),
		one("pause a sink", "/sinks/books", "/sinks/books/pause", nil, chief),
		one("resume a sink", "/sinks/books", "/sinks/books/resume", nil, chief),
		one("redrive", "/sinks/books", "/sinks/books/redrive", nil, operators),
		one("skip", "/sinks/books", "/sinks/books/skip", []string{"reason", "r"}, operators),
		one("forget", "/sinks/books", "/sinks/books/forget", nil, chief),
		{"consume", "/messages", "/console/messages/retry?", "/messages/retry", message, operators},
		{"discard", "/messages", "/console/messages/discard?", "/messages/discard", message, operators},
		one("make a key", "/keys", "/keys/new", []string{"name", "n", "grants", "keys"}, []string{"keeper"}),
		{"rotate a key", "", "", robots + "/rotate", nil, nil}, // whose actor is another
		one("revoke a key", "/keys", robots+"/revoke", nil, []string{"keeper"}),
	}, robot, asked
}

// flight is the command in flight of an instance, as pairs for a form.
func (s *stand) flight(id uuid.UUID) []string {
	s.t.Helper()
	c, err := s.Engine().Read().Case(s.t.Context(), "", id)
	require.NoError(s.t, err)
	require.Len(s.t, c.InFlight, 1)
	return []string{"scope", c.InFlight[0].Scope, "key", c.InFlight[0].Key}
}

// queryOf are pairs as a query.
func queryOf(pairs []string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q.Encode()
}

// wantEveryAction fails the test where there is a route that no attempt takes.
func wantEveryAction(t *testing.T, list []attempted) {
	t.Helper()
	routes, taken := http.NewServeMux(), map[string]bool{"POST /sign-out": true} // which is for everybody
	for _, path := range console.Actions() {
		routes.HandleFunc("POST "+path, http.NotFound)
	}
	for _, a := range list {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.path, nil)
		require.NoError(t, err)
		_, pattern := routes.Handler(r)
		taken[pattern] = true
	}
	for _, path := range console.Actions() {
		assert.Truef(t, taken["POST "+path], "nobody has tried %s", path)
	}
}

func TestMePageShowsGrants(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	v := s.visitor(s.key("ann", identities["noter"], "clerk"))
	v.get("/console/me").want(200, "<bdi>ann</bdi>", "<code>clerk</code>", "<code>submit:claim/note</code>")
	v.get("/console/me?can=submit:claim/note").want(200, "yes, by")
	v.get("/console/me?can=operate").want(200, "no, no grant gives this right")
	v.get("/console/me?can="+url.QueryEscape("<b>")).want(400, `role="alert"`, `value="&lt;b&gt;"`)
}

func TestStuckPage_Settle(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	reader, olga := s.visitor(s.key("ron", "read submit")), s.visitor(s.key("olga", identities["operator"]))
	reader.get("/console/stuck").want(403)
	for action, c := range map[string]struct{ more, state string }{
		"resolve": {"7", "paid"}, "abandon": {"", "unpaid"},
	} {
		id := s.stuck("S-" + action)
		found, err := s.Engine().Read().Case(t.Context(), "", id)
		require.NoError(t, err)
		ref := url.Values{"scope": {found.InFlight[0].Scope}, "key": {found.InFlight[0].Key}}
		olga.get("/console/stuck").want(200, "/console/stuck/"+action+"?")
		olga.get("/console/stuck/"+action+"?"+ref.Encode()).want(200, "Reason, for the audit", id.String())
		pairs := []string{"scope", ref.Get("scope"), "key", ref.Get("key"), "instance", id.String(), "result", c.more}
		reader.fill("/console/stuck/"+action, append(pairs, "reason", "forged")...).want(403)
		olga.fill("/console/stuck/"+action, pairs...).want(400, "a reason is required")
		form := olga.form(append(pairs, "reason", "the <bank> says so")...)
		for range 2 {
			p := olga.post("/console/stuck/"+action, form).want(http.StatusSeeOther)
			assert.Equal(t, "/console/instances/"+id.String(), p.location())
		}
		await.Eventually(t, "the command has ended", func() bool { // which is another commit
			return strings.Contains(olga.get("/console/instances/"+id.String()).text, "the &lt;bank&gt; says so")
		})
		olga.get("/console/instances/"+id.String()).want(200, "<bdi>olga</bdi>", `<span class="state open"><bdi>`+c.state+`</bdi>`)
	}
}

// Keys are made, shown once and rotated; their text is nowhere else.
func TestKeyTextIsShownOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	boss := s.visitor(s.key("boss", everything))
	p := boss.fill("/console/keys/new", "name", "till <1>", "grants", "read submit:claim/note", "expires", "2099-01-01T00:00").want(201,
		"It is not shown again")
	_, text, _ := strings.Cut(p.text, `id="secret">`)
	text, _, _ = strings.Cut(text, "<")
	require.True(t, strings.HasPrefix(text, "pawl_"), p.text)
	s.visitor(text).get("/console/instances").want(200)
	list := boss.get("/console/keys").want(200, "till &lt;1&gt;", "submit:claim/note", "2099-01-01 00:00:00")
	assert.NotContains(t, list.text, text, "the list has the text")
	boss.fill("/console/keys/new", "name", "till <1>", "grants", "read").want(409, `role="alert"`, `value="till &lt;1&gt;"`)
	boss.fill("/console/keys/new", "name", "x", "grants", "eat").want(400)
	id := strings.Split(text, "_")[1]
	boss.get("/console/keys/"+id+"/rotate").want(200, "The new text is shown once")
	again := boss.fill("/console/keys/"+id+"/rotate").want(200, "It is not shown again")
	assert.NotContains(t, again.text, text, "the text is the same")
}
