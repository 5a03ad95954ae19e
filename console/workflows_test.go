package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A workflow is shown with its diagram, its states and how many instances each has, its timers and its transitions.
func TestAWorkflowIsShownAsItIsDeclared(t *testing.T) {
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
		"an activity: in paying meanwhile, unpaid where it fails; 5 attempts", "asks a person where nobody can know", "&#34;maxLength&#34;: 100",
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
func TestAWorkflowIsShownInItsVersions(t *testing.T) {
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
