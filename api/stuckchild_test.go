package api_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
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
		grants, err = auth.ParseGrants(text)
		require.NoError(t, err)
	}
	set("read submit operate")
	s.post("/v1/workflows/folder/open", "o", `{"name":"F-1"}`).want(t, 201)
	const at = "/v1/workflows/folder/keys/F-1"
	s.post(at+"/fill", "f", `{"n":2}`).want(t, 200)
	children := read[wire.ChildPage](t, s.get(at+"/children")).Children
	child := children[1].ID
	s.post("/v1/instances/"+child.String()+"/post", "p", `{}`).want(t, 202)
	await.Eventually(t, "the parent has a problem", func() bool {
		return len(read[wire.InstanceView](t, s.get(at)).StuckChildren) == 1
	})
	p := read[wire.InstanceView](t, s.get(at)).StuckChildren[0]
	assert.Truef(t, p.Instance == child && p.Workflow == "letter" && p.Transition == "post" && p.Stuck != "" && p.Message != "",
		"the problem is %+v", p)
	for query, want := range map[string]int{"": 3, "?stuck=true": 1, "?stuck=false": 2} {
		assert.Lenf(t, read[wire.ChildPage](t, s.get(at+"/children"+query)).Children, want, "%q children", query)
	}
	for _, c := range read[wire.ChildPage](t, s.get(at+"/children")).Children {
		assert.Truef(t, c.Stuck == (c.ID == child) && !c.Deferred, "%+v", c)
	}
	s.get(at+"/children?stuck=perhaps").wantProblem(t, 400, workflow.InvalidRequest)
	whole := "/v1/ops/instances/" + read[wire.InstanceView](t, s.get(at)).ID.String()
	assert.Len(t, read[api.Case](t, s.get(whole)).Instance.StuckChildren, 1, "an operator sees")
	for text, want := range map[string]int{"read": 1, "read:folder": 0, "read:folder read:bill": 0, "read:folder read:letter": 1} {
		set(text)
		assert.Len(t, read[wire.InstanceView](t, s.get(at)).StuckChildren, want, text)
	}
}
