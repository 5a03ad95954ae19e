package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A workflow is shown with its diagram, its states and how many instances each has, its timers and its transitions.
func TestWorkflowPage_Declaration(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.filed("A-1", 10)
	s.filed("A-2", 10)
	s.do(s.filed("A-3", 10), "lapse", "clock", `{}`)
	v := s.visitor(s.key("boss", everything))
	v.get("/console/workflows").want(200, `href="/console/workflows/claim"`, `href="/console/workflows/order"`, "filed, approved")
	v.get("/console/workflows/claim").want(200, "version 1", "<b>2</b> <bdi>filed</bdi>", "<b>1</b> <bdi>closed</bdi>", "Begin: file",
		"Attributes: who",
		"<b>term</b> in filed does lapse", "Somebody asks for money.", "open to the roles boss", "not to who did file", "guards: not too much",
		"an activity: in paying meanwhile, unpaid if it fails; 5 attempts", "asks an operator if the outcome is unknown", "&#34;maxLength&#34;: 100",
		`src="/console/workflows/claim/diagram?version=1"`, `href="/console/instances?state=filed&amp;workflow=claim"`)
	p := v.get("/console/workflows/claim/diagram?version=1").want(200, "<svg")
	assert.Equal(t, "image/svg+xml", p.header.Get("Content-Type"), "the diagram")
	narrow := s.visitor(s.key("ann", "read:claim")).get("/console/workflows/claim").want(200, "Somebody asks for money.")
	assert.True(t, !strings.Contains(narrow.text, "Begin:") && !strings.Contains(narrow.text, "/pause"), "who may not is offered it")
	v.fill("/console/workflows/claim/pause", "reason", "the <office> burns").want(http.StatusSeeOther)
	v.get("/console/workflows").want(200, "the &lt;office&gt; burns")
	v.get("/console/workflows/claim").want(200, "the &lt;office&gt; burns", "/console/workflows/claim/resume")
	v.get("/console/").want(200, "<b>1</b> paused workflows")
	v.fill("/console/workflows/claim/resume").want(http.StatusSeeOther)
}

// Each version of a workflow that still has instances is there to be looked at.
func TestWorkflowPage_Versions(t *testing.T) {
	t.Parallel()
	loan := func(version int, first workflow.State) workflow.Source {
		return workflow.Define("loan", version,
			workflow.Start("ask", first, func(*workflow.Call, *struct{}, workflow.None) error { return nil }),
			workflow.On("end", workflow.From(first), "ended", func(*workflow.Call, *struct{}, workflow.None) error { return nil })).Final("ended")
	}
	s := newStand(t, func(c *service.Config) { c.Workflows = append(c.Workflows, loan(1, "asked")) })
	s.submit(transitions.Command{Workflow: "loan", Transition: "ask", Payload: []byte(`{}`)})
	newer := s.node(func(c *service.Config) {
		c.Auth.Keys, c.Workflows = true, append(c.Workflows, loan(1, "asked"), loan(2, "requested"))
	})
	for range 2 {
		r, err := newer.Engine().Submit(t.Context(), transitions.Command{Workflow: "loan", Transition: "ask", Key: uuid.NewString(),
			Payload: []byte(`{}`)})
		require.Truef(t, err == nil && r.Status < 400, "%v %v", r.Status, err)
	}
	v := newVisitor(t, newer.URL())
	v.post("/console/sign-in", url.Values{"credential": {s.key("boss", everything)}}).want(http.StatusSeeOther)
	v.get("/console/workflows/loan").want(200, "version 2", "<b>2</b> <bdi>requested</bdi>",
		`href="/console/workflows/loan?version=1">version 1: <b>1</b> open, 0 ended<`,
		`href="/console/workflows/loan?version=2" aria-current="page">version 2: <b>2</b> open, 0 ended<`,
		`href="/console/instances?definition=2&amp;state=requested&amp;workflow=loan"`)
	v.get("/console/workflows").want(200,
		`?definition=1&amp;open=true&amp;workflow=loan">1</a> of <a href="/console/workflows/loan?version=1"`,
		`?definition=2&amp;open=true&amp;workflow=loan">2</a> of`)
	list := v.get("/console/instances?workflow=loan&definition=1&open=true").want(200, `name="definition" value="1"`)
	assert.Equal(t, 1, strings.Count(list.text, `name="id"`), "listed")
	p := v.get("/console/workflows/loan?version=1").want(200, "version 1", "<b>1</b> <bdi>asked</bdi>", "diagram?version=1")
	assert.NotContains(t, p.text, "requested", "a version shows another's states")
	v.get("/console/workflows/loan?version=3").want(http.StatusNotFound, `role="alert"`)
	v.get("/console/workflows/loan?version=x").want(http.StatusBadRequest, `role="alert"`)
}

// Each number of the overview leads to a page that shows as many, or says where they are.
func TestOverview_NumbersLinkToLists(t *testing.T) {
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
