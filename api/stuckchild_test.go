package api_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

func TestStuckChildIsShownToReadersOfBoth(t *testing.T) {
	nothing := func(*workflow.Call, *Folder, workflow.None) error { return nil }
	post := func(context.Context, *workflow.Attempt, Folder, workflow.None) (string, error) {
		return "", errors.New("no answer")
	}
	letter := workflow.Define("letter", 1, workflow.Start("write", "written", nothing),
		workflow.Do("post", workflow.From("written"), "posting", "posted", post, func(*workflow.Call, *Folder, string) error { return nil }).
			OrElse("posted", func(*workflow.Call, *Folder, workflow.Failure) error { return nil }).AskOperator()).Final("posted")
	all := folders()
	all[0] = letter
	var grants auth.Grants
	s := newServerOf(t, all, nil, func(c *api.Config) {
		c.Identify = func(*http.Request) (api.Caller, error) {
			return api.Caller{Tenant: "default", Actor: "ann", Roles: []string{"*"}, Grants: grants}, nil
		}
	})
	set := func(text string) {
		t.Helper()
		var err error
		if grants, err = auth.ParseGrants(text); err != nil {
			t.Fatal(err)
		}
	}
	set("read submit operate")
	s.post("/v1/workflows/folder/open", "o", `{"name":"F-1"}`).want(t, 201)
	const at = "/v1/workflows/folder/keys/F-1"
	s.post(at+"/fill", "f", `{"n":2}`).want(t, 200)
	children := read[api.ChildPage](t, s.get(at+"/children")).Children
	child := children[1].ID
	s.post("/v1/instances/"+child.String()+"/post", "p", `{}`).want(t, 202)
	await.Eventually(t, "the parent has a problem", func() bool {
		return len(read[api.InstanceView](t, s.get(at)).StuckChildren) == 1
	})
	p := read[api.InstanceView](t, s.get(at)).StuckChildren[0]
	if p.Instance != child || p.Workflow != "letter" || p.Transition != "post" || p.Stuck == "" || p.Message == "" {
		t.Errorf("the problem is %+v", p)
	}
	for query, want := range map[string]int{"": 3, "?stuck=true": 1, "?stuck=false": 2} {
		if page := read[api.ChildPage](t, s.get(at+"/children"+query)); len(page.Children) != want {
			t.Errorf("%q: %d children, want %d", query, len(page.Children), want)
		}
	}
	for _, c := range read[api.ChildPage](t, s.get(at+"/children")).Children {
		if c.Stuck != (c.ID == child) || c.Deferred {
			t.Errorf("%+v", c)
		}
	}
	s.get(at+"/children?stuck=perhaps").wantProblem(t, 400, workflow.InvalidRequest)
	whole := "/v1/ops/instances/" + read[api.InstanceView](t, s.get(at)).ID.String()
	if c := read[api.Case](t, s.get(whole)); len(c.Instance.StuckChildren) != 1 {
		t.Errorf("an operator sees %+v", c.Instance.StuckChildren)
	}
	for text, want := range map[string]int{"read": 1, "read:folder": 0, "read:folder read:bill": 0, "read:folder read:letter": 1} {
		set(text)
		if v := read[api.InstanceView](t, s.get(at)); len(v.StuckChildren) != want {
			t.Errorf("%s: %+v", text, v.StuckChildren)
		}
	}
}
