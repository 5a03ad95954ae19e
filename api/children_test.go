package api_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Folder starts instances of two workflows.
type Folder struct{}

type letters struct {
	Name string `json:"name,omitempty"`
	N    int    `json:"n,omitempty"`
}

func folders() []workflow.Source {
	nothing := func(*workflow.Call, *Folder, workflow.None) error { return nil }
	of := func(name string) workflow.Source {
		return workflow.Define(name, 1, workflow.Start("write", "written", nothing),
			workflow.On("burn", workflow.From("written"), "burnt", nothing)).
			Final("burnt")
	}
	return []workflow.Source{of("letter"), of("bill"), workflow.Define("folder", 1,
		workflow.Start("open", "open", func(*workflow.Call, *Folder,
			letters) error {
			return nil
		}).BusinessKey(func(l letters) string { return l.Name }),
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

func TestChildrenAndTheParentAreShown(t *testing.T) {
	s := newServerOf(t, folders(), nil)
	s.post("/v1/workflows/folder/open", "o", `{"name":"F-1"}`).want(t, 201)
	const at = "/v1/workflows/folder/keys/F-1"
	s.post(at+"/fill", "f", `{"n":3}`).want(t, 200)
	id := transitions.InstanceID("default", "folder", "F-1")
	all := read[wire.ChildPage](t, s.get(at+"/children"))
	require.Truef(t, len(all.Children) == 4 && all.Next == "" && all.Instance == id, "%+v", all)
	for i, c := range all.Children {
		want := [2]string{"letter", "noted"}
		if i == 3 {
			want = [2]string{"bill", ""}
		}
		got := [2]string{c.Workflow, c.End}
		assert.Truef(t, got == want && c.Open && c.State == "written", "%d: %+v", i, c)
		v := read[wire.InstanceView](t, s.get("/v1/instances/"+c.ID.String()))
		if p := v.Parent; p == nil || p.Workflow != "folder" || p.Instance != id || p.BusinessKey != "F-1" || p.End != c.End {
			t.Errorf("its parent is %+v", v.Parent)
		}
	}
	s.post("/v1/instances/"+all.Children[1].ID.String()+"/burn", "b", `{}`).want(t, 200)
	for query, want := range map[string]int{"open=true": 3, "open=false": 1, "state=burnt": 1, "state=burnt&state=written": 4,
		"open=false&state=written": 0} {
		page := read[wire.ChildPage](t, s.get("/v1/instances/"+id.String()+"/children?"+query))
		assert.Truef(t, len(page.Children) == want && page.Children != nil, "%s: %+v", query, page)
	}
	var seen []uuid.UUID
	for next, pages := "", 0; pages == 0 || next != ""; pages++ {
		page := read[wire.ChildPage](t, s.get(at+"/children?limit=3&cursor="+url.QueryEscape(next)))
		for _, c := range page.Children {
			seen = append(seen, c.ID)
		}
		next = page.Next
		require.True(t, pages <= 2, "the pages do not end")
	}
	assert.True(t, len(seen) == 4 && seen[0] == all.Children[0].ID && seen[3] == all.Children[3].ID, seen)
	assert.Nil(t, read[wire.InstanceView](t, s.get(at)).Parent)
	s.get("/v1/instances/"+uuid.NewString()+"/children").wantProblem(t, 404, workflow.InstanceNotFound)
	s.get("/v1/workflows/folder/keys/F-2/children").wantProblem(t, 404, workflow.InstanceNotFound)
	s.get("/v1/workflows/nothing/keys/F-1/children").wantProblem(t, 404, workflow.WorkflowNotFound)
	s.get(at+"/children?cursor=AQAAAAAAAAAAAAAAAAAAAAA").wantProblem(t, 400, workflow.InvalidRequest)
}

// A reader of one workflow sees only the children of that workflow, and no id of a parent that it may not read.
func TestChildrenNeedRead(t *testing.T) {
	var grants auth.Grants
	s := newServerOf(t, folders(), nil, func(c *api.Config) {
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
	set("read submit")
	s.post("/v1/workflows/folder/open", "o", `{"name":"F-1"}`).want(t, 201)
	const at = "/v1/workflows/folder/keys/F-1"
	s.post(at+"/fill", "f", `{"n":2}`).want(t, 200)
	child := read[wire.ChildPage](t, s.get(at+"/children")).Children[0].ID.String()
	for text, want := range map[string]int{"read": 3, "read:folder": 0, "read:folder read:bill": 1, "read:folder read:letter": 2} {
		set(text)
		assert.Lenf(t, read[wire.ChildPage](t, s.get(at+"/children")).Children, want, "%s children", text)
	}
	for text, want := range map[string]string{"read": "F-1", "read:letter": "", "read:letter read:folder": "F-1"} {
		set(text)
		v := read[wire.InstanceView](t, s.get("/v1/instances/"+child))
		assert.Truef(t, v.Parent != nil && v.Parent.BusinessKey == want, "%s: %+v", text, v.Parent)
	}
	set("read:letter")
	s.get(at+"/children").wantProblem(t, 403, workflow.Forbidden)
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
	nodes := read[api.NodeList](t, s.get("/v1/ops/nodes", "Pawl-Roles", "operator")).Nodes
	assert.Truef(t, len(nodes) == 1 && nodes[0].Name == c.InFlight[0].ClaimedBy && nodes[0].Leases == 1 && nodes[0].Alive &&
		nodes[0].Build != "" && len(nodes[0].Knowing) == 2 && nodes[0].Leads != nil && nodes[0].Sinks != nil && nodes[0].Migrations != nil,
		"%+v", nodes)
	of := read[api.NodeList](t, s.get("/v1/ops/nodes", "Pawl-Tenant", "other")).Nodes
	assert.Truef(t, len(of) == 1 && of[0].Leases == 0, "another tenant's: %+v", of)
	of = read[api.NodeList](t, s.get("/v1/ops/nodes?all_tenants=true", "Pawl-Tenant", "other")).Nodes
	assert.Truef(t, len(of) == 1 && of[0].Leases == 1, "all tenants': %+v", of)
	s.get("/v1/ops/nodes", "Pawl-Roles", "clerk").wantProblem(t, 403, workflow.Forbidden)
	s.get("/v1/ops/nodes?all_tenants=true", "Pawl-Roles", "operator").wantProblem(t, 403, workflow.Forbidden)
}
