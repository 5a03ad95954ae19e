package console_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

var (
	whyList = regexp.MustCompile(`(?s)<ul class="why">(.*?)</ul>`)
	whyItem = regexp.MustCompile(`(?s)<li class="(\w+)">(.*?)</li>`)
	tags    = regexp.MustCompile(`<[^>]*>`)
)

// reasons are what the page of an instance says about why it does not move: a kind, and a text.
func reasons(p *page) map[string]string {
	p.t.Helper()
	list := whyList.FindStringSubmatch(p.text)
	if list == nil {
		return nil
	}
	all := map[string]string{}
	for _, item := range whyItem.FindAllStringSubmatch(list[1], -1) {
		all[item[1]] = html.UnescapeString(tags.ReplaceAllString(item[2], ""))
	}
	return all
}

// An instance that stands still in each of the ways that there are shows that one.
func TestInstancePage_Reasons(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(c *service.Config) { c.Workflows = append(c.Workflows, parents()...) })
	for _, c := range []struct {
		kind, text string
		actor      string
		roles      []string
		make       func(number string) uuid.UUID
	}{
		{"timer", `the timer "term" will submit "lapse"`, "olga", nil, func(n string) uuid.UUID { return s.filed(n, 10) }},
		{"command", "you can submit: note", "olga", nil, func(n string) uuid.UUID { return s.filed(n, 10) }},
		{"command", "you can submit: note, approve", "olga", []string{"boss"}, func(n string) uuid.UUID { return s.filed(n, 10) }},
		// separation of duties
		{"command", "you can submit: note", "ann", []string{"boss"}, func(n string) uuid.UUID { return s.filed(n, 10) }},
		{"command", "you can submit: note", "olga", []string{"boss"}, func(n string) uuid.UUID { return s.filed(n, 100_000) }}, // the guard
		{"scheduled", `carl has scheduled "note"`, "olga", nil, func(n string) uuid.UUID {
			id := s.filed(n, 10)
			s.submit(transitions.Command{Instance: id, Transition: "note", Actor: "carl", Payload: []byte(`{"note":"x"}`),
				Options: transitions.Options{NotBefore: time.Now().Add(time.Hour)}})
			return id
		}},
		{"paused", "the instance is paused", "olga", nil, func(n string) uuid.UUID {
			id := s.filed(n, 10)
			s.operate(transitions.Pause, id, "the office burns")
			return id
		}},
		{"works", "attempt 1 is running", "olga", nil, func(n string) uuid.UUID {
			id := s.calling(n)
			answer := await.Receive(t, "the bank is asked", s.bank.asked)
			t.Cleanup(func() { answer <- nil })
			return id
		}},
		{"fails", "attempt 1 has failed, 1 failure in total", "olga", nil, func(n string) uuid.UUID {
			id := s.calling(n)
			await.Receive(t, "the bank is asked", s.bank.asked) <- errBank
			s.awaitCase("the attempt has failed", id, failedOnce)
			return id
		}},
		{"stuck", "a command waits for an operator", "olga", nil, s.stuck},
		{"child", `the completion of a child submits "fledged": chick is in "small"`, "olga", nil, func(n string) uuid.UUID { return s.bred(n, 1) }},
		{"refused", "a command of another user is needed", "olga", nil, func(n string) uuid.UUID {
			return s.submit(transitions.Command{Workflow: "nest", Transition: "build", Payload: fmt.Appendf(nil, `{"name":%q}`, n)}).Instance
		}},
	} {
		s.wantReason(c.make("W-"+uuid.NewString()), c.actor, c.roles, c.kind, c.text)
	}
	// A paused workflow, and the reasons against a transition.
	id := s.filed("W-last", 100_000)
	require.NoError(t, s.Engine().Admin().PauseWorkflow(t.Context(), "default", "claim", "olga", "nobody is here"))
	boss := s.visitor(s.key("bob", everything, "boss"))
	p := boss.get("/console/instances/"+id.String()).want(200, "100000 is more than anybody may approve", "open to the roles boss",
		"not to who did file")
	got := reasons(p)["paused"]
	assert.Truef(t, strings.Contains(got, "the workflow is paused") && strings.Contains(got, "olga: nobody is here"), "%q", reasons(p))
	require.NoError(t, s.Engine().Admin().ResumeWorkflow(t.Context(), "default", "claim"))
}

// calling is a claim about which the bank is asked, by a node that has a worker.
func (s *stand) calling(number string) uuid.UUID {
	s.t.Helper()
	id := s.filed(number, 10)
	s.do(id, "approve", "bob", `{}`)
	s.do(id, "call", "bob", `{"note":""}`)
	return id
}

// wantReason requires a reason on the page of an instance.
func (s *stand) wantReason(id uuid.UUID, actor string, roles []string, kind, text string) {
	s.t.Helper()
	v := s.visitor(s.key(actor, everything, roles...))
	p := v.get("/console/instances/" + id.String()).want(200)
	assert.Contains(s.t, reasons(p)[kind], text, kind)
}

func TestInstancePage_UnknownVersion(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	id := s.filed("A-1", 10)
	s.do(id, "approve", "bob", `{}`)
	other := s.node(func(c *service.Config) {
		c.Auth.Keys, c.Workflows = true, []workflow.Source{workflow.Define("other", 1,
			workflow.Start("begin", "begun", func(*workflow.Call, *struct{}, workflow.None) error { return nil })).Final("begun")}
	})
	v := newVisitor(t, other.URL())
	v.post("/console/sign-in", map[string][]string{"credential": {s.key("olga", everything)}}).want(303)
	p := v.get("/console/instances/" + id.String()).want(200)
	assert.Containsf(t, reasons(p)["unknown"], `this node does not know version 1 of the workflow "claim"`, "%q", reasons(p))
}

// jobs are a workflow whose instances get stuck or end, and a parent that takes no completion until it is opened.
func jobs() []workflow.Source {
	type data struct{}
	nothing := func(*workflow.Call, *data, workflow.None) error { return nil }
	work := func(context.Context, *workflow.Attempt, data, workflow.None) (int, error) {
		return 0, errors.New("no answer")
	}
	return []workflow.Source{
		workflow.Define("shop", 1,
			workflow.Start("build", "shut", func(c *workflow.Call, _ *data, _ workflow.None) error {
				for range 2 {
					c.Spawn(workflow.Child{Workflow: "job", Transition: "begin", End: "finished"})
				}
				return nil
			}),
			workflow.On("unlock", workflow.From("shut"), "open", nothing),
			workflow.On("finished", workflow.From("open"), workflow.Stay, func(*workflow.Call, *data, workflow.Ended[data]) error { return nil }),
			workflow.On("close", workflow.From("open"), "closed", nothing)).Final("closed"),
		workflow.Define("job", 1, workflow.Start("begin", "begun", nothing),
			workflow.Do("work", workflow.From("begun"), "working", "done", work, func(*workflow.Call, *data, int) error { return nil }).
				OrElse("done", func(*workflow.Call, *data, workflow.Failure) error { return nil }).AskOperator(),
			workflow.On("drop", workflow.From("begun"), "done", nothing)).Final("done"),
	}
}

func TestPageShowsProblemsOfChildren(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(c *service.Config) { c.Workflows = append(c.Workflows, jobs()...) })
	id := s.submit(transitions.Command{Workflow: "shop", Transition: "build"}).Instance
	list, err := s.Engine().Read().Children(t.Context(), inspect.ChildFilter{Parent: id})
	require.Truef(t, err == nil && len(list.Children) == 2, "%v %v", len(list.Children), err)
	s.submit(transitions.Command{Instance: list.Children[0].ID, Transition: "work"})
	s.submit(transitions.Command{Instance: list.Children[1].ID, Transition: "drop"})
	await.Eventually(t, "one child is stuck, and the completion of the other one is deferred", func() bool {
		v, err := s.Engine().Read().View(t.Context(), "", id)
		return err == nil && len(v.StuckChildren) == 1 && len(v.Links.Deferred) == 1
	})
	page := s.visitor(s.key("olga", everything)).get("/console/instances/" + id.String())
	page.want(200, "<em>stuck</em>", "its end waits for another state")
	got := reasons(page)
	assert.Containsf(t, got["stuckchild"], `a child is stuck, job `+list.Children[0].ID.String()+`: "work" waits for an operator`,
		"%q", got)
	assert.Containsf(t, got["deferred"], `a child has completed, but "finished" is not possible now`, "%q", got)
	narrow := s.visitor(s.key("ned", "read:shop")).get("/console/instances/" + id.String())
	if got := reasons(narrow.want(200)); got["stuckchild"] != "" {
		t.Errorf("%q", got)
	}
}
