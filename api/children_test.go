package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Folder starts instances of two workflows.
type Folder struct{}

type letters struct {
	Name string `json:"name,omitempty"`
	N    int    `json:"n,omitempty"`
}

// folders are a workflow whose instances start letters, which can get stuck, and a bill.
func folders() []workflow.Source {
	nothing := func(*workflow.Call, *Folder, workflow.None) error { return nil }
	post := func(context.Context, *workflow.Attempt, Folder, workflow.None) (string, error) {
		return "", errors.New("no answer")
	}
	letter := workflow.Define("letter", 1, workflow.Start("write", "written", nothing),
		workflow.On("burn", workflow.From("written"), "burnt", nothing),
		workflow.Do("post", workflow.From("written"), "posting", "posted", post, func(*workflow.Call, *Folder, string) error { return nil }).
			OrElse("posted", func(*workflow.Call, *Folder, workflow.Failure) error { return nil }).AskOperator()).Final("posted", "burnt")
	bill := workflow.Define("bill", 1, workflow.Start("write", "written", nothing)).Final("written")
	return []workflow.Source{letter, bill, workflow.Define("folder", 1,
		workflow.Start("open", "open", func(*workflow.Call, *Folder, letters) error { return nil }).
			BusinessKey(func(l letters) string { return l.Name }),
		workflow.On("fill", workflow.From("open"), workflow.Stay, func(c *workflow.Call, _ *Folder, l letters) error {
			for range l.N {
				c.Spawn(workflow.Child{Workflow: "letter", Transition: "write", End: "noted"})
			}
			c.Spawn(workflow.Child{Workflow: "bill", Transition: "write"})
			return nil
		}),
		workflow.On("noted", workflow.From("open"), workflow.Stay, func(*workflow.Call, *Folder, workflow.Ended[Folder]) error { return nil }),
		workflow.On("shut", workflow.From("open"), "shut", nothing)).Final("shut")}
}

const theFolder = "/v1/workflows/folder/keys/F-1"

// newFolder is a server with a folder of n letters and a bill, whose caller has the grants that may sets.
func newFolder(t *testing.T, n string) (s *server, may func(grants string)) {
	var grants auth.Grants
	s = newServerOf(t, folders(), nil, func(c *api.Config) {
		c.Identify = func(*http.Request) (api.Caller, error) {
			return api.Caller{Tenant: "default", Actor: "ann", Roles: []string{"*"}, Grants: grants}, nil
		}
	})
	may = func(text string) {
		t.Helper()
		var err error
		grants, err = auth.ParseGrants(text)
		require.NoError(t, err)
	}
	may("read submit operate")
	s.post("/v1/workflows/folder/open", "o", `{"name":"F-1"}`).want(t, 201)
	s.post(theFolder+"/fill", "f", `{"n":`+n+`}`).want(t, 200)
	return s, may
}

func (s *server) children(query string) wire.ChildPage {
	s.t.Helper()
	return read[wire.ChildPage](s.t, s.get(theFolder+"/children"+query))
}

func TestChildrenAndParentAreShown(t *testing.T) {
	s, _ := newFolder(t, "3")
	id := transitions.InstanceID("default", "folder", "F-1")
	all := s.children("")
	require.Truef(t, len(all.Children) == 4 && all.Next == "" && all.Instance == id, "%+v", all)
	for i, c := range all.Children {
		want := [2]string{"letter", "noted"}
		if i == 3 {
			want = [2]string{"bill", ""}
		}
		assert.Equal(t, want, [2]string{c.Workflow, c.End})
		v := read[wire.InstanceView](t, s.get("/v1/instances/"+c.ID.String()))
		assert.Equal(t, &wire.Parent{Workflow: "folder", Instance: id, BusinessKey: "F-1", End: c.End}, v.Parent)
	}
	s.post("/v1/instances/"+all.Children[1].ID.String()+"/burn", "b", `{}`).want(t, 200)
	for query, want := range map[string]int{"open=true": 2, "open=false": 2, "state=burnt": 1, "state=burnt&state=written": 4,
		"open=true&state=burnt": 0} {
		page := s.children("?" + query)
		assert.Truef(t, len(page.Children) == want && page.Children != nil, "%s: %+v", query, page)
	}
	first := s.children("?limit=3")
	rest := s.children("?limit=3&cursor=" + url.QueryEscape(first.Next))
	assert.Truef(t, len(first.Children) == 3 && len(rest.Children) == 1 && rest.Next == "" && rest.Children[0].ID == all.Children[3].ID,
		"%+v, then %+v", first, rest)
	s.get("/v1/instances/"+uuid.NewString()+"/children").wantProblem(t, 404, workflow.InstanceNotFound)
	s.get("/v1/workflows/nothing/keys/F-1/children").wantProblem(t, 404, workflow.WorkflowNotFound)
}

// A reader of one workflow sees only children of that workflow, and no business key of a parent that it may not read.
func TestChildrenNeedRead(t *testing.T) {
	s, may := newFolder(t, "2")
	child := s.children("").Children[1].ID
	s.post("/v1/instances/"+child.String()+"/post", "p", `{}`).want(t, 202)
	var stuck []wire.StuckChild
	await.Eventually(t, "the parent shows the stuck child", func() bool {
		stuck = read[wire.InstanceView](t, s.get(theFolder)).StuckChildren
		return len(stuck) == 1
	})
	assert.Truef(t, stuck[0].Instance == child && stuck[0].Workflow == "letter" && stuck[0].Transition == "post" && stuck[0].Stuck != "" &&
		stuck[0].Message != "", "%+v", stuck)
	for query, want := range map[string]int{"?stuck=true": 1, "?stuck=false": 2} {
		assert.Lenf(t, s.children(query).Children, want, "%q children", query)
	}
	whole := "/v1/ops/instances/" + transitions.InstanceID("default", "folder", "F-1").String()
	assert.Len(t, read[api.Case](t, s.get(whole)).Instance.StuckChildren, 1, "an operator sees")
	for _, c := range []struct {
		grants          string
		children, stuck int
	}{{"read", 3, 1}, {"read:folder", 0, 0}, {"read:folder read:bill", 1, 0}, {"read:folder read:letter", 2, 1}} {
		may(c.grants)
		assert.Lenf(t, s.children("").Children, c.children, "%s: children", c.grants)
		assert.Lenf(t, read[wire.InstanceView](t, s.get(theFolder)).StuckChildren, c.stuck, "%s: stuck", c.grants)
	}
	for grants, want := range map[string]string{"read": "F-1", "read:letter": "", "read:letter read:folder": "F-1"} {
		may(grants)
		assert.Equal(t, want, read[wire.InstanceView](t, s.get("/v1/instances/"+child.String())).Parent.BusinessKey, grants)
	}
	may("read:letter")
	s.get(theFolder+"/children").wantProblem(t, 403, workflow.Forbidden)
}

// The name of a node is for operators.
func TestLeaseHolderNeedsOperator(t *testing.T) {
	s := newServer(t)
	id := s.booked()
	a := s.deliver(id, "k")
	a.want(t, 202)
	s.visit()
	for roles, want := range map[string]bool{"*": true, "operator": true, "clerk": false} {
		status := read[wire.CommandStatus](t, s.get(a.header.Get("Location"), "Pawl-Roles", roles))
		assert.Truef(t, !status.LockedUntil.IsZero() && status.ClaimedBy == "" != want && status.ClaimedAt.IsZero() != want,
			"%s: %+v", roles, status)
	}
	c := read[api.Case](t, s.get("/v1/ops/instances/"+id.String()))
	assert.Truef(t, len(c.InFlight) == 1 && c.InFlight[0].ClaimedBy != "", "%+v", c.InFlight)
	for query, leases := range map[string]int64{"": 0, "?all_tenants=true": 1} {
		nodes := read[api.NodeList](t, s.get("/v1/ops/nodes"+query, "Pawl-Tenant", "other")).Nodes
		assert.Truef(t, len(nodes) == 1 && nodes[0].Name == c.InFlight[0].ClaimedBy && int64(nodes[0].Leases) == leases && nodes[0].Alive &&
			nodes[0].Build != "" && len(nodes[0].Knowing) == 2 && nodes[0].Leads != nil, "%q: %+v", query, nodes)
	}
}
