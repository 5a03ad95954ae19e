package auth_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
)

// A grant does not cover targets that are wider or different. May agrees with an independent
// oracle: the target must name all that the grant names.
func FuzzCovers(f *testing.F) {
	for _, pair := range [][2]string{{"read", "read:order"}, {"read:order", "read"}, {"submit:order/pay", "submit:order#7/pay"},
		{"submit:order#7", "submit:@" + transitions.InstanceID("acme", "order", "7").String() + "/pay"}, {"operate:all", "operate:order"},
		{"operate", "operate:all"}, {"read:@" + anID, "read:order#7"}, {"act-as:order/pay", "act-as:order/ship"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, given, asked string) {
		g, err := auth.ParseGrant(given)
		if err != nil {
			t.Skip()
		}
		a, err := auth.ParseGrant(asked)
		if err != nil {
			t.Skip()
		}
		p := auth.Principal{Tenant: "acme", Grants: auth.Grants{g}}
		right := g.Right == a.Right || g.Right == auth.OperateAll && a.Right == auth.Operate
		if got, want := p.May(a.Right, a.Target), right && names(a.Target, g.Target); got != want {
			t.Errorf("%q is covered by %q: %t", asked, given, got)
		}
		assert.Truef(t, p.May(g.Right, g.Target), "%q does not cover itself", given)
		assert.Falsef(t, p.AsksForWorkflow(a.Right, a.Target) && (p.May(a.Right, a.Target) || a.Instance == uuid.Nil),
			"%q, %q: the workflow is asked for in vain", given, asked)
	})
}

// names reports whether more names all that less names.
func names(more, less auth.Target) bool {
	id := func(t auth.Target) uuid.UUID {
		if t.BusinessKey != "" {
			return transitions.InstanceID("acme", t.Workflow, t.BusinessKey)
		}
		return t.Instance
	}
	transition := less.Transition == "" || less.Transition == more.Transition
	instance := id(less) == uuid.Nil || id(less) == id(more)
	workflow := less.Workflow == "" || less.Workflow == more.Workflow || id(less) != uuid.Nil && id(less) == id(more)
	return transition && instance && workflow
}
