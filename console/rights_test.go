package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/await"
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

// Who may not, does not see the way to it, and is refused when he forges the form: whatever can be done, whoever he is.
func TestWhoMayNotIsRefused(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	note, paused, stuck := s.filed("R-1", 10).String(), s.filed("R-2", 10).String(), s.stuck("R-3")
	made := s.key("robot", "read")
	keyID := strings.Split(made, "_")[1]
	c, err := s.Engine().Case(t.Context(), "", stuck)
	if err != nil {
		t.Fatal(err)
	}
	ref := []string{"scope", c.InFlight[0].Scope, "key", c.InFlight[0].Key, "reason", "r", "instance", stuck.String()}
	message := []string{"consumer", "c", "message", "m", "hash", "none", "reason", "r"}
	submitters, operators := []string{"submitter", "operator", "chief"}, []string{"operator", "chief"}
	visitors := map[string]*visitor{}
	for name, grants := range identities {
		visitors[name] = s.visitor(s.key(name, grants))
	}
	for _, a := range []attempted{
		{"begin", "/workflows/claim", "/workflows/claim/do/file", "/workflows/claim/do/file", []string{"p/number", "N", "p/who", "w", "p/amount", "1"}, submitters},
		{"submit", "/instances/" + note, "/do/note", "/instances/" + note + "/do/note", []string{"p/note", "x"}, append(submitters, "noter")},
		{"try", "/instances/" + note, "/do/note", "/instances/" + note + "/do/note", []string{"p/note", "x", "do", "dry"}, append(submitters, "noter")},
		{"pause", "/instances/" + paused, "/pause", "/instances/" + paused + "/pause", []string{"reason", "r"}, operators},
		{"resume", "/instances/" + paused, "", "/instances/" + paused + "/resume", []string{"reason", "r"}, operators},
		{"pause a workflow", "/workflows/order", "/workflows/order/pause", "/workflows/order/pause", []string{"reason", "r"}, operators},
		{"resume a workflow", "/workflows/order", "", "/workflows/order/resume", nil, operators},
		{"stop", "", "", "/commands/cancel", []string{"scope", "claim:x", "key", "none"}, nil},
		{"retry", "/stuck", "/stuck/retry", "/stuck/retry", ref, operators},
		{"resolve", "/stuck", "", "/stuck/resolve", append(ref, "result", "7"), operators},
		{"abandon", "/stuck", "", "/stuck/abandon", ref, operators},
		{"move", "/sinks", "", "/sinks/none/move", []string{"position", "1", "reason", "r"}, operators},
		{"pause a sink", "/sinks", "", "/sinks/none/pause", nil, []string{"chief"}},
		{"resume a sink", "/sinks", "", "/sinks/none/resume", nil, []string{"chief"}},
		{"redrive", "/sinks", "", "/sinks/none/redrive", nil, operators},
		{"skip", "/sinks", "", "/sinks/none/skip", []string{"reason", "r"}, operators},
		{"forget", "/sinks", "", "/sinks/none/forget", nil, []string{"chief"}},
		{"consume", "/messages", "", "/messages/retry", message, operators},
		{"discard", "/messages", "", "/messages/discard", message, operators},
		{"make a key", "/keys", "/keys/new", "/keys/new", []string{"name", "n", "grants", "keys"}, []string{"keeper"}},
		{"rotate a key", "/keys", "/keys/" + keyID + "/rotate", "/keys/" + keyID + "/rotate", nil, nil}, // whose actor is another
		{"revoke a key", "/keys", "/keys/" + keyID + "/revoke", "/keys/" + keyID + "/revoke", nil, []string{"keeper"}},
	} {
		for name, v := range visitors {
			if may := slices.Contains(a.allowed, name); a.link != "" && len(a.allowed) > 0 {
				if shown := strings.Contains(v.get("/console"+a.shown).text, a.link); shown != may {
					t.Errorf("%s sees the way to %s: %v", name, a.name, shown)
				}
			}
		}
		for name, v := range visitors {
			p := v.post("/console"+a.path, v.form(a.form...))
			refused := p.status == http.StatusForbidden || p.status == http.StatusNotFound && !strings.Contains(p.text, "there is no sink")
			if may := slices.Contains(a.allowed, name); refused == may {
				t.Errorf("%s: %s is answered with %d %s", name, a.name, p.status, p.text)
			}
		}
	}
	await.Receive(t, "the bank is asked again", s.bank.asked) <- nil
	visitors["operator"].get("/console/instances/" + paused).want(200)
	newVisitor(t, s.URL()).post("/console/sign-in", url.Values{"credential": {made}}).want(http.StatusUnauthorized)
}

func TestOneIsToldWhatOneMay(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	v := s.visitor(s.key("ann", identities["noter"], "clerk"))
	v.get("/console/me").want(200, "<bdi>ann</bdi>", "<code>clerk</code>", "<code>submit:claim/note</code>")
	v.get("/console/me?can=submit:claim/note").want(200, "yes, by")
	v.get("/console/me?can=operate").want(200, "no, no grant gives this right")
	v.get("/console/me?can="+url.QueryEscape("<b>")).want(400, `role="alert"`, `value="&lt;b&gt;"`)
}

// What waits for an operator is settled by one, once, with his name and his reason.
func TestAnOperatorSettlesWhatIsStuck(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	reader, olga := s.visitor(s.key("ron", "read submit")), s.visitor(s.key("olga", identities["operator"]))
	reader.get("/console/stuck").want(403)
	for action, c := range map[string]struct{ more, state string }{
		"resolve": {"7", "paid"}, "abandon": {"", "unpaid"},
	} {
		id := s.stuck("S-" + action)
		found, err := s.Engine().Case(t.Context(), "", id)
		if err != nil {
			t.Fatal(err)
		}
		ref := url.Values{"scope": {found.InFlight[0].Scope}, "key": {found.InFlight[0].Key}}
		olga.get("/console/stuck").want(200, "/console/stuck/"+action+"?")
		olga.get("/console/stuck/"+action+"?"+ref.Encode()).want(200, "Reason, for the audit", id.String())
		pairs := []string{"scope", ref.Get("scope"), "key", ref.Get("key"), "instance", id.String(), "result", c.more}
		reader.fill("/console/stuck/"+action, append(pairs, "reason", "forged")...).want(403)
		olga.fill("/console/stuck/"+action, pairs...).want(400, "say why")
		form := olga.form(append(pairs, "reason", "the <bank> says so")...)
		for range 2 {
			if p := olga.post("/console/stuck/"+action, form).want(http.StatusSeeOther); p.location() != "/console/instances/"+id.String() {
				t.Error(p.location())
			}
		}
		await.Eventually(t, "the command has ended", func() bool { // which is another commit
			return strings.Contains(olga.get("/console/instances/"+id.String()).text, "the &lt;bank&gt; says so")
		})
		olga.get("/console/instances/"+id.String()).want(200, "<bdi>olga</bdi>", `<span class="state open"><bdi>`+c.state+`</bdi>`)
	}
}

// Keys are made, shown once and rotated; their text is nowhere else.
func TestAKeyIsShownOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	boss := s.visitor(s.key("boss", everything))
	p := boss.fill("/console/keys/new", "name", "till <1>", "grants", "read submit:claim/note", "expires", "2099-01-01T00:00").want(201, "It is not shown again")
	_, text, _ := strings.Cut(p.text, `id="secret">`)
	text, _, _ = strings.Cut(text, "<")
	if !strings.HasPrefix(text, "pawl_") {
		t.Fatal(p.text)
	}
	s.visitor(text).get("/console/instances").want(200)
	list := boss.get("/console/keys").want(200, "till &lt;1&gt;", "submit:claim/note", "2099-01-01 00:00:00")
	if strings.Contains(list.text, text) {
		t.Error("the list has the text")
	}
	boss.fill("/console/keys/new", "name", "till <1>", "grants", "read").want(409, `role="alert"`, `value="till &lt;1&gt;"`)
	boss.fill("/console/keys/new", "name", "x", "grants", "eat").want(400)
	id := strings.Split(text, "_")[1]
	boss.get("/console/keys/"+id+"/rotate").want(200, "The key gets a new text")
	again := boss.fill("/console/keys/"+id+"/rotate").want(200, "It is not shown again")
	if strings.Contains(again.text, text) {
		t.Error("the text is the same")
	}
}
