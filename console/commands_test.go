package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
)

// Each number of the overview leads to a page that shows as many, or says where they are.
func TestEachNumberOfTheOverviewLeadsToItsList(t *testing.T) {
	t.Parallel()
	s := newFullStand(t)
	stuck := s.stuck("A-1")
	working := s.filed("A-2", 10)
	s.do(working, "approve", "bob", `{}`)
	s.do(working, "call", "bob", `{"note":""}`)
	asked := await.Receive(t, "the bank is asked", s.bank.asked)
	later := s.filed("A-3", 10)
	s.submit(transitions.Command{Instance: later, Transition: "note", Actor: "ann", Payload: []byte(`{"note":"x"}`), Reason: "as <promised>",
		Key: "later", Options: transitions.Options{NotBefore: time.Now().Add(time.Hour)}})
	s.operate(transitions.Pause, later, "the <office> burns")
	v := s.visitor(s.key("boss", everything))
	p := v.get("/console/").want(200, "paused instances", "<b>1</b> commands processing")
	assert.Equalf(t, "", regexp.MustCompile(`<li[^>]*><span>`).FindString(p.text), "a number leads nowhere: %s", p.text)
	links := regexp.MustCompile(`<li[^>]*><a href="([^"#]+)[^"]*">(?:at least )?<b>`).FindAllStringSubmatch(p.text, -1)
	assert.Truef(t, len(links) >= 12, "%d numbers: %s", len(links), p.text)
	for _, link := range links {
		v.get(strings.ReplaceAll(link[1], "&amp;", "&")).want(200)
	}
	for status, has := range map[string]string{"stuck": stuck.String(), "failed_retryable": stuck.String(), "processing": working.String(),
		"scheduled": "as &lt;promised&gt;", "pending": "as &lt;promised&gt;", "": "claim note", "due": "There are none.",
		"stale": "There are none.", "lapsed": "There are none."} {
		v.get("/console/commands?workflow=claim&status="+status).want(200, has)
	}
	v.get("/console/commands?status=scheduled&actor=ann").want(200, "as &lt;promised&gt;", "<bdi>ann</bdi>", `name="actor" value="ann"`)
	v.get("/console/commands?status=scheduled&actor=ann&proof=key").want(200, "There are none.", `name="proof" value="key"`)
	v.get("/console/commands?status=succeeded").want(400)
	v.get("/console/commands?status=").want(200, `/console/commands?key=later&amp;scope=`)
	v.get("/console/commands?"+queryOf(s.flight(working))).want(200, "<b>processing</b>")
	scope := "claim:" + later.String()
	v.get("/console/commands?"+queryOf([]string{"scope", scope, "key", "later"})).want(200, "<q>as &lt;promised&gt;</q>")
	s.visitor(s.key("ron", "read")).get("/console/commands").want(403)
	s.visitor(s.key("nora", "read operate:claim")).get("/console/commands").want(403)
	s.visitor(s.key("nick", "read operate:claim")).get("/console/commands?workflow=claim").want(200, "A-1")
	asked <- nil
}

// The list shows each pause with actor and reason, and can resume it.
func TestPausedPage_Resume(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	olga := s.visitor(s.key("olga", identities["operator"]))
	olga.get("/console/paused").want(200, "There are none.")
	id := s.filed("P-<1>", 10)
	olga.fill("/console/instances/"+id.String()+"/pause", "reason", "the <office> burns").want(http.StatusSeeOther)
	olga.fill("/console/workflows/order/pause", "reason", "stock <taking>").want(http.StatusSeeOther)
	resume, all := "/console/instances/"+id.String()+"/resume", "/console/workflows/order/resume"
	olga.get("/console/paused").want(200, "P-&lt;1&gt;", "the &lt;office&gt; burns", "stock &lt;taking&gt;", "<bdi>olga</bdi>",
		`href="`+resume+`"`,
		`href="`+all+`"`)
	olga.get("/console/paused?workflow=order").want(200, "stock &lt;taking&gt;", "There are none.")
	for _, path := range []string{resume, all} {
		olga.get(path).want(200)
		olga.fill(path, "reason", "over").want(http.StatusSeeOther)
	}
	p := olga.get("/console/paused").want(200)
	assert.Equal(t, 2, strings.Count(p.text, "There are none."), p.text)
	s.visitor(s.key("ron", "read")).get("/console/paused").want(403)
}
