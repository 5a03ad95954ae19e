package auth_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
)

const anID = "0197f6a0-5b1c-7d2e-9f3a-4b5c6d7e8f90"

func TestGrantTextIsCanonical(t *testing.T) {
	id := uuid.MustParse(anID)
	for text, want := range map[string]auth.Grant{
		"read":                   {Right: auth.Read},
		"operate:all":            {Right: auth.OperateAll},
		"keys":                   {Right: auth.Keys},
		"read:order":             {Right: auth.Read, Target: auth.Target{Workflow: "order"}},
		"stream:order#A-17":      {Right: auth.Stream, Target: auth.Target{Workflow: "order", BusinessKey: "A-17"}},
		"read:order#a%20b%2F%23": {Right: auth.Read, Target: auth.Target{Workflow: "order", BusinessKey: "a b/#"}},
		"read:order#%C3%A9":      {Right: auth.Read, Target: auth.Target{Workflow: "order", BusinessKey: "é"}},
		"submit:order/pay":       {Right: auth.Submit, Target: auth.Target{Workflow: "order", Transition: "pay"}},
		"submit:order#7/pay":     {Right: auth.Submit, Target: auth.Target{Workflow: "order", BusinessKey: "7", Transition: "pay"}},
		"submit:@" + anID:        {Right: auth.Submit, Target: auth.Target{Instance: id}},
		"submit:@" + anID + "/p": {Right: auth.Submit, Target: auth.Target{Instance: id, Transition: "p"}},
		"act-as:order/pay":       {Right: auth.ActAs, Target: auth.Target{Workflow: "order", Transition: "pay"}},
		"operate:order":          {Right: auth.Operate, Target: auth.Target{Workflow: "order"}},
	} {
		if got, err := auth.ParseGrant(text); err != nil || got != want || got.String() != text {
			t.Errorf("%q: %+v %q, %v", text, got, got, err)
		}
	}
	for _, text := range []string{"", "*", "write", "Read", "read:", "read:*", "read:Order", "read:order/pay", "read:order#", "read:order#%zz",
		"read:order#%41", "read:order#a b", "read:order#%00", "read:@", "read:@x", "read:@" + strings.ToUpper(anID), "read:@{" + anID + "}",
		"read:@00000000-0000-0000-0000-000000000000", "submit:/pay", "submit:order/", "submit:order/pay/x", "submit:order/pay#7",
		"operate:all:order", "operate:all/x", "keys:order", "keys:", "public", "read order", " read", "read:order#" + strings.Repeat("a", 256),
		"read:" + strings.Repeat("a", 65)} {
		if g, err := auth.ParseGrant(text); err == nil {
			t.Errorf("%q is taken as %+v", text, g)
		}
	}
	all, err := auth.ParseGrants(" read  submit:order/pay\tread ")
	assert.Truef(t, err == nil && all.String() == "read submit:order/pay", "%q, %v", all, err)
}

func TestGrantCoversTarget(t *testing.T) {
	byKey := transitions.InstanceID("acme", "order", "7")
	for _, c := range []struct {
		grants, right string
		covered       string // targets, as in a grant
		not           string
		looks         string // covered if the workflow of the instance is known
	}{
		{"", "read", "", "* order order#7 @" + anID, ""},
		{"read", "read", "* order order#7 order/pay @" + anID, "", ""},
		{"read", "stream", "", "* order", ""},
		{"submit", "read", "", "* order", ""},
		{"operate", "operate:all", "", "*", ""},
		{"operate:all", "operate", "* order @" + anID, "", ""},
		{"operate:all", "read", "", "*", ""},
		{"read:order", "read", "order order#7", "* bill bill#7 @" + anID, "@" + anID},
		{"read:order#7", "read", "order#7 @" + byKey.String(), "* order order#8 bill#7 @" + anID, ""},
		{"read:@" + byKey.String(), "read", "order#7 @" + byKey.String(), "* order order#8 @" + anID, ""},
		{"submit:order/pay", "submit", "order/pay order#7/pay", "* order order/ship bill/pay @" + anID + "/pay", "@" + anID + "/pay"},
		{"submit:order#7/pay", "submit", "order#7/pay", "order/pay order#7/ship order#8/pay", ""},
		{"read:bill read:order", "read", "order bill", "*", "@" + anID},
		{"read:bill submit:order", "read", "bill", "order", "@" + anID},
	} {
		grants, err := auth.ParseGrants(c.grants)
		require.NoError(t, err)
		p := auth.Principal{Tenant: "acme", Grants: grants}
		right := auth.Right(c.right)
		for _, one := range strings.Fields(c.covered) {
			assert.Truef(t, p.May(right, target(t, one)) && p.Has(right), "%q does not cover %s of %s", c.grants, right, one)
		}
		for _, one := range strings.Fields(c.not) {
			assert.Falsef(t, p.May(right, target(t, one)), "%q covers %s of %s", c.grants, right, one)
			if looks := slices.Contains(strings.Fields(c.looks), one); p.AsksForWorkflow(right, target(t, one)) != looks {
				t.Errorf("%q, %s of %s: it is asked for the workflow: %t", c.grants, right, one, !looks)
			}
		}
	}
	other := auth.Principal{Tenant: "other", Grants: auth.Grants{{Right: auth.Read, Target: auth.Target{Workflow: "order", BusinessKey: "7"}}}}
	assert.False(t, other.May(auth.Read, auth.Target{Instance: byKey}),
		"a business key of one tenant covers the instance of another one")
}

// target parses a target as in a grant; "*" means everything.
func target(t *testing.T, text string) auth.Target {
	t.Helper()
	if text == "*" {
		return auth.Target{}
	}
	g, err := auth.ParseGrant("submit:" + text)
	require.NoError(t, err)
	return g.Target
}

// An accepted grant is canonical, and covers itself and nothing wider.
func FuzzGrant(f *testing.F) {
	for _, text := range []string{"read", "operate:all", "submit:order#a%20b/pay", "read:@" + anID, "read:order#%C3%A9", "read:order#%c3%a9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := auth.ParseGrant(text)
		if err != nil {
			assert.Equalf(t, (auth.Grant{}), g, "%q is refused, and", text)
			return
		}
		assert.Truef(t, g.String() == text && !strings.ContainsAny(text, " \t\n,\""), "%q is taken as %q", text, g)
		p := auth.Principal{Tenant: "acme", Grants: auth.Grants{g}, Until: time.Time{}}
		assert.Truef(t, p.May(g.Right, g.Target), "%q does not cover itself", text)
		wide := (auth.Target{})
		assert.Falsef(t, g.Target != wide && p.May(g.Right, wide), "%q covers everything", text)
	})
}

func TestGrantsCoverRequestedGrant(t *testing.T) {
	byKey := transitions.InstanceID("acme", "order", "7").String()
	for _, c := range []struct {
		has, asked string
		want       bool
	}{
		{"read", "read:order#7", true},
		{"read:order", "read", false},
		{"read:order#7", "read:order", false},
		{"read:order", "stream:order", false},
		{"read:order", "read:bill#7", false},
		{"read:order#7", "read:@" + byKey, true},
		{"read:@" + byKey, "read:order#7", true},
		{"read:@" + byKey, "read:order#8", false},
		{"read:order", "read:@" + anID, false}, // unless the workflow is known
		{"submit:order/pay", "submit:order#7/pay", true},
		{"submit:order/pay", "submit:order#7", false},
		{"submit:order/pay", "submit:order#7/ship", false},
		{"submit:order", "submit:order#7/pay", true},
		{"operate:all", "operate:order", true},
		{"operate", "operate:all", false},
		{"", "read:order", false},
	} {
		all, err := auth.ParseGrants(c.has)
		require.NoError(t, err)
		asked, err := auth.ParseGrant(c.asked)
		require.NoError(t, err)
		assert.Equalf(t, c.want, all.Cover("acme", asked), "%q covers %q", c.has, c.asked)
		asked.Workflow = "order"
		assert.Falsef(t, c.asked == "read:@"+anID && !all.Cover("acme", asked),
			"%q does not cover %q, whose workflow is known", c.has, c.asked)
	}
	other, err := auth.ParseGrant("read:@" + byKey)
	require.NoError(t, err)
	assert.False(t, (auth.Grants{{Right: auth.Read, Target: auth.Target{Workflow: "order", BusinessKey: "7"}}}).Cover("else", other),
		"a business key covers the instance of another tenant")
}

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
