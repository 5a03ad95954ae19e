package commit

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
)

func attempt(tenant, scope, transition string, c decide.KeyVerdict) *op {
	return &op{verdict: c, p: &decide.Prepared{Command: transitions.Command{Tenant: tenant, Workflow: "order",
		Transition: transition, Options: transitions.Options{Scope: scope}}}}
}

func TestAttemptCounts_Scopes(t *testing.T) {
	p := &Pipeline{}
	p.scopes.count([]*op{
		attempt("a", "order:17e70c5b", "pay", decide.KeyNew),
		attempt("a", "order:27e70c5b", "pay", decide.KeyReplay),
		attempt("a", "till 7", "pay", decide.KeyMismatch),
		attempt("a", "inbox:bank", "pay", decide.KeyNew),
		attempt("b", "order:17e70c5b", "pay", decide.KeyActive),
		{p: &decide.Prepared{Resumed: &decide.Resumed{}}}, // a worker's, not a caller's
	})
	got := fmt.Sprintf("%+v", p.Scopes("a"))
	want := fmt.Sprintf("%+v", []inspect.ScopeCount{
		{Tenant: "a", Scope: "order:pay", New: 1, Replayed: 1},
		{Tenant: "a", Scope: "inbox:bank", New: 1},
		{Tenant: "a", Scope: "till 7", Named: true, Mismatched: 1},
	})
	assert.Equal(t, want, got)
	assert.Len(t, p.Scopes(""), 4, "all tenants")
}

// Whoever makes up scopes gets no more memory, and hides nobody.
func TestScopesWithoutEndAreCountedTogether(t *testing.T) {
	p := &Pipeline{}
	const made = 10 * maxScopes
	for i := range made {
		p.scopes.count([]*op{
			attempt("a", fmt.Sprint("made up ", i), "pay", decide.KeyNew),
			attempt("a", "till 7", "pay", decide.KeyReplay),
			attempt(fmt.Sprint("tenant ", i), "order:x", "pay", decide.KeyNew),
		})
	}
	list := p.Scopes("")
	assert.Truef(t, len(list) <= maxScopes+2, "%d scopes are kept", len(list))
	var till, total int64
	rest := map[string]int64{}
	for _, s := range list {
		total += s.Attempts()
		if s.Scope == "till 7" {
			till = s.Replayed
		}
		if s.Tenant == "" {
			rest[s.Scope] = s.New
		}
	}
	assert.Truef(t, till == made && total == 3*made, "till 7 has %d of %d, all together %d of %d", till, made, total, 3*made)
	assert.Truef(t, rest[inspect.OtherScopes] != 0 && rest["order:pay"] != 0, "the rest: %v", rest)
}
