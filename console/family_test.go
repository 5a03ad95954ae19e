package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// parents are two workflows. Instances of one start instances of the other and continue when they complete.
func parents() []workflow.Source {
	type data struct{}
	type brood struct {
		Name string `json:"name,omitempty"`
		N    int    `json:"n,omitempty"`
	}
	nothing := func(*workflow.Call, *data, workflow.None) error { return nil }
	return []workflow.Source{
		workflow.Define("nest", 1,
			workflow.Start("build", "built", func(*workflow.Call, *data,
				brood) error {
				return nil
			}).BusinessKey(func(b brood) string { return b.Name }),
			workflow.On("breed", workflow.From("built"), "waiting", func(c *workflow.Call, _ *data, b brood) error {
				for range b.N {
					c.Spawn(workflow.Child{Workflow: "chick", Transition: "hatch", End: "fledged"})
				}
				return nil
			}).Role("bird"),
			workflow.On("fledged", workflow.From("waiting"), "left", func(*workflow.Call, *data,
				workflow.Ended[data]) error {
				return nil
			}).Role("chick")).
			Final("left").Roles("bird", "chick"),
		workflow.Define("chick", 1, workflow.Start("hatch", "small", nothing),
			workflow.On("fly", workflow.From("small"), "flown", nothing)).Final("flown"),
	}
}

// bred is a nest with so many children.
func (s *stand) bred(name string, n int) uuid.UUID {
	s.t.Helper()
	id := s.submit(transitions.Command{Workflow: "nest", Transition: "build", Payload: fmt.Appendf(nil, `{"name":%q}`, name)}).Instance
	s.submit(transitions.Command{Instance: id, Transition: "breed", Payload: fmt.Appendf(nil, `{"n":%d}`, n)})
	return id
}

func TestInstancePage_ParentAndChildren(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(c *service.Config) { c.Workflows = append(c.Workflows, parents()...) })
	id := s.bred("N-<1>", 30)
	v := s.visitor(s.key("olga", everything))
	first := v.get("/console/instances/"+id.String()).want(200, "Parent and children", "More children")
	assert.Containsf(t, reasons(first)["child"], `the completion of a child submits "fledged": chick is in "small"`, "%q", reasons(first))
	assert.Equal(t, 25, strings.Count(first.text, ">chick <bdi>"), "children on the first page")
	_, after, _ := strings.Cut(first.text, `<p class="pages"><a class="button" href="`)
	next, _, _ := strings.Cut(after, `"`)
	rest := v.get(strings.ReplaceAll(next, "&amp;", "&")).want(200, "The first ones")
	n := strings.Count(rest.text, ">chick <bdi>")
	assert.Truef(t, n == 5 && !strings.Contains(rest.text, "More children"), "%d children on the second page", n)
	list, err := s.Engine().Read().Instances(t.Context(), inspect.Filter{Workflow: "chick"})
	require.Truef(t, err == nil && len(list.Instances) == 30, "%v %v", len(list.Instances), err)
	child := list.Instances[0].ID
	v.get("/console/instances/"+child.String()).want(200, `Started by <a href="/console/instances/`+id.String()+
		`">nest <bdi>N-&lt;1&gt;</bdi></a>, which does fledged`)
	s.submit(transitions.Command{Instance: child, Transition: "fly"})
	await.Eventually(t, "the nest is left", func() bool {
		i, err := s.Engine().Read().Instance(t.Context(), "", id)
		return err == nil && i.State == "left"
	})
	v.get("/console/instances/"+id.String()).want(200, "flown")
	// Without the right to read them, children are hidden, and so is the number of a parent.
	narrow := s.visitor(s.key("ned", "read:nest"))
	assert.NotContains(t, narrow.get("/console/instances/"+id.String()).want(200).text, ">chick <bdi>")
	small := s.visitor(s.key("carl", "read:chick"))
	assert.NotContains(t, small.get("/console/instances/"+child.String()).want(200, "nest <bdi>"+id.String()).text, "N-&lt;1&gt;")
}

func TestNodesAndLeasesNeedOperate(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	id := s.filed("L-1", 10)
	s.do(id, "approve", "bob", `{}`)
	s.do(id, "call", "bob", `{"note":""}`)
	answer := await.Receive(t, "the bank is asked", s.bank.asked)
	defer func() { answer <- nil }()
	nodes, err := s.Engine().Admin().Nodes(t.Context(), "")
	require.Truef(t, err == nil && len(nodes) == 1 && nodes[0].Leases == 1, "%+v, %v", nodes, err)
	name := nodes[0].Name
	olga, ann := s.visitor(s.key("olga", everything)), s.visitor(s.key("ann", "read submit"))
	page := "/console/instances/" + id.String()
	assert.Contains(t, reasons(olga.get(page).want(200, "of <bdi>"+name+"</bdi>"))["works"], "with a lease of "+name)
	olga.get("/console/").want(200, "<bdi>"+name+"</bdi>", ">claim 1</a>")
	for _, path := range []string{page, "/console/"} {
		assert.NotContainsf(t, ann.get(path).want(200).text, name, "%s tells the name of a node", path)
	}
	assert.Contains(t, reasons(ann.get(page))["works"], "with a lease of a node")
}
