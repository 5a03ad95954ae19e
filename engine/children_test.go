package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// litter asks for so many children.
type litter struct {
	N int `json:"n"`
}

// family is a workflow whose bear starts as many children as it is asked for, at most 100 at once, and whose note starts none.
func family() *workflow.Definition[struct{}] {
	return workflow.Define("family", 1, workflow.Start("open", "open", keep),
		workflow.On("note", workflow.From("open"), workflow.Stay, keep),
		workflow.On("bear", workflow.From("open"), workflow.Stay, func(c *workflow.Call, _ *struct{}, l litter) error {
			for range l.N {
				c.Spawn(workflow.Child{Workflow: "kid", Transition: "born", End: "mourn"})
			}
			return nil
		}),
		workflow.On("mourn", workflow.From("open"), workflow.Stay, nothing[struct{}, workflow.Ended[struct{}]]),
		workflow.On("close", workflow.From("open"), "closed", keep)).Final("closed")
}

// bear has a family begin with so many children by each of its next transitions, 0 by a note.
func bear(t *testing.T, e *engine.Engine, numbers ...int) uuid.UUID {
	t.Helper()
	id := submit(t, e, transitions.Command{Workflow: "family", Transition: "open", Key: uuid.NewString()}).Instance
	for i, n := range numbers {
		c := transitions.Command{Workflow: "family", Transition: "note", Key: fmt.Sprint(i), Instance: id}
		if n > 0 {
			c.Transition, c.Payload = "bear", fmt.Appendf(nil, `{"n":%d}`, n)
		}
		submit(t, e, c)
	}
	return id
}

// children reads every page of them.
func children(t *testing.T, e *engine.Engine, f inspect.ChildFilter) (all []transitions.Instance, pages int) {
	t.Helper()
	for {
		page, err := e.Read().Children(t.Context(), f)
		require.NoError(t, err)
		pages++
		for _, c := range page.Children {
			all = append(all, c.Instance)
		}
		if !page.More {
			return all, pages
		}
		f.After = page.Next
	}
}

func TestChildrenAreListedInTheOrderOfTheirStarts(t *testing.T) {
	t.Parallel()
	pool, e := started(t, flows(kid, family()))
	id := bear(t, e, 0, 3, 0, 0, 100, 1)
	other := bear(t, e, 2)
	want := query[[]uuid.UUID](t, pool, `SELECT array_agg(instance ORDER BY split_part(key, '-', 1)::int, split_part(key, '-', 2)::int)
		FROM pawl.audit WHERE workflow = 'kid' AND scope = 'pawl:child:' || $1::uuid`, id)
	for _, limit := range []int{0, 1, 3, 103, 104, 1000} {
		all, pages := children(t, e, inspect.ChildFilter{Parent: id, Limit: limit})
		got := make([]uuid.UUID, len(all))
		for i := range all {
			got[i] = all[i].ID
		}
		assert.Truef(t, slices.Equal(got, want) && len(got) == 104, "pages of %d: %d children, want %d", limit, len(got), len(want))
		assert.Truef(t, (limit != 1 || pages == 104) && (limit < 104 || pages == 1), "%d pages of %d", pages, limit)
	}
	all, _ := children(t, e, inspect.ChildFilter{Parent: other})
	assert.Truef(t, len(all) == 2 && all[0].Links.Parent.Instance == other && all[0].Links.Parent.End == "mourn" && all[0].Open,
		"of the other: %+v", all)
	all, _ = children(t, e, inspect.ChildFilter{Parent: want[0]})
	assert.Empty(t, all, "a child")
	for _, dead := range []int{1, 50, 103} {
		submit(t, e, transitions.Command{Workflow: "kid", Transition: "die", Key: "d", Instance: want[dead]})
	}
	yes, no := true, false
	for name, c := range map[string]struct {
		f    inspect.ChildFilter
		want int
	}{
		"open": {inspect.ChildFilter{Open: &yes, Limit: 10}, 101}, "ended": {inspect.ChildFilter{Open: &no, Limit: 2}, 3},
		"in a state": {inspect.ChildFilter{States: []workflow.State{"dead"}}, 3},
		"in some":    {inspect.ChildFilter{States: []workflow.State{"dead", "alive"}}, 104},
		"in none":    {inspect.ChildFilter{States: []workflow.State{"lost"}}, 0},
	} {
		c.f.Parent = id
		all, _ := children(t, e, c.f)
		assert.Len(t, all, c.want, name)
	}
	wantCode(t, errOf(e.Read().Children(t.Context(), inspect.ChildFilter{Parent: uuid.New()})), workflow.InstanceNotFound)
	wantCode(t, errOf(e.Read().Children(t.Context(), inspect.ChildFilter{Tenant: "acme", Parent: id})), workflow.InstanceNotFound)
	wantCode(t, errOf(e.Read().Children(t.Context(), inspect.ChildFilter{Parent: id, States: []workflow.State{"\x00"}})),
		workflow.InvalidRequest)
}

func TestAViewTellsTheParent(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), flows(kid, family(), workflow.Define("keyed", 1,
		workflow.Start("begin", "begun", func(c *workflow.Call, _ *struct{}, _ keyedBy) error {
			c.Spawn(workflow.Child{Workflow: "kid", Transition: "born"})
			return nil
		}).BusinessKey(func(n keyedBy) string { return n.Name })).Final("begun")))
	id := bear(t, e, 1)
	submit(t, e, transitions.Command{Workflow: "keyed", Transition: "begin", Key: "k", Payload: []byte(`{"name":"K-1"}`)})
	keyed := transitions.InstanceID("default", "keyed", "K-1")
	for parent, want := range map[uuid.UUID]inspect.Parent{
		id:    {Workflow: "family", Instance: id, End: "mourn"},
		keyed: {Workflow: "keyed", Instance: keyed, BusinessKey: "K-1"},
	} {
		all, _ := children(t, e, inspect.ChildFilter{Parent: parent})
		require.Len(t, all, 1, "children")
		v, err := e.Read().View(t.Context(), "", all[0].ID)
		assert.Truef(t, err == nil && v.Parent != nil && *v.Parent == want, "%+v, %v, want %+v", v.Parent, err, want)
	}
	v, err := e.Read().View(t.Context(), "", id)
	assert.Truef(t, err == nil && v.Parent == nil, "%+v, %v", v.Parent, err)
}

// keyedBy is the payload of what is created with a business key.
type keyedBy struct {
	Name string `json:"name"`
}
