package commit

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
)

// maxScopes is how many scopes are counted one by one. Callers name scopes and
// tenants, so there may be any number.
const maxScopes = 1000

// scopeKey identifies the scope by which attempts are counted: a tenant's workflow and transition, or a scope that a caller named. Without
// a tenant it collects the scopes of all tenants beyond the limit.
type scopeKey struct{ tenant, workflow, transition, named string }

// keyOfScope takes every scope that begins with the workflow's name for the
// default one.
func keyOfScope(p *decide.Prepared) scopeKey {
	if rest, ok := strings.CutPrefix(p.Scope, p.Workflow); ok && strings.HasPrefix(rest, ":") {
		return scopeKey{tenant: p.Tenant, workflow: p.Workflow, transition: p.Transition}
	}
	return scopeKey{tenant: p.Tenant, named: p.Scope}
}

// declared reports whether there is an end to such scopes: the workflows declare
// them, with their transitions and the consumers of their messages.
func (k scopeKey) declared() bool {
	return k.named == "" || strings.HasPrefix(k.named, transitions.InboxScope(""))
}

// rest is where a scope is counted that there is no room for.
func (k scopeKey) rest() scopeKey {
	if !k.declared() {
		k.named = inspect.OtherScopes
	}
	k.tenant = ""
	return k
}

func (k scopeKey) String() string {
	if k.named != "" {
		return k.named
	}
	return k.workflow + ":" + k.transition
}

// scopes count how the attempts of callers were answered, by scope. It is locked
// once for a group.
type scopes struct {
	mu     sync.Mutex
	counts map[scopeKey]*scopeCounts
}

// scopeCounts are the attempts of a scope since the start, and the part that TakeScopes has returned.
type scopeCounts struct{ all, taken inspect.ScopeCount }

// count takes the attempts of a group that was answered.
func (s *scopes) count(ops []*op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last scopeKey
	var c *scopeCounts
	for _, o := range ops {
		if o.p.Resumed != nil {
			continue
		}
		if k := keyOfScope(o.p); c == nil || k != last {
			last, c = k, s.of(k)
		}
		countVerdict(&c.all, o.verdict)
	}
}

// of finds the counts of a scope, and makes room for a new one.
func (s *scopes) of(k scopeKey) *scopeCounts {
	c := s.counts[k]
	if c == nil {
		if k.tenant != "" && len(s.counts) >= maxScopes {
			s.shrink()
		}
		if s.counts == nil {
			s.counts = make(map[scopeKey]*scopeCounts)
		}
		c = &scopeCounts{}
		s.counts[k] = c
	}
	return c
}

// shrink counts the smaller half of the scopes with the rest from here on, so
// that those with many attempts stay. The rest itself has an end: it is one for
// each scope that is declared, and one for all that callers named.
func (s *scopes) shrink() {
	var keys []scopeKey
	for k := range s.counts {
		if k.tenant != "" {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b scopeKey) int { return cmp.Compare(s.counts[a].all.Attempts(), s.counts[b].all.Attempts()) })
	for _, k := range keys[:(len(keys)+1)/2] {
		c := s.counts[k]
		delete(s.counts, k)
		rest := s.of(k.rest())
		rest.all.Merge(&c.all)
		rest.taken.Merge(&c.taken)
	}
}

// Scopes returns how the attempts of a tenant were answered since the start, by scope, the most frequent first. The tenant "" selects all
// tenants; then an entry without a tenant collects the scopes beyond the limit.
func (pipe *Pipeline) Scopes(tenant string) []inspect.ScopeCount {
	s := &pipe.scopes
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]inspect.ScopeCount, 0, len(s.counts))
	for k, c := range s.counts {
		if tenant == "" || k.tenant == tenant {
			list = append(list, k.entry(c.all))
		}
	}
	slices.SortFunc(list, func(a, b inspect.ScopeCount) int {
		return cmp.Or(cmp.Compare(b.Attempts(), a.Attempts()), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Scope, b.Scope))
	})
	return list
}

// TakeScopes returns the attempts of all tenants since its last call, by scope.
func (pipe *Pipeline) TakeScopes() (list []inspect.ScopeCount) {
	s := &pipe.scopes
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, c := range s.counts {
		if c.all != c.taken {
			list = append(list, k.entry(c.all.Since(&c.taken)))
			c.taken = c.all
		}
	}
	return list
}

// entry returns c with the names of the scope.
func (k scopeKey) entry(c inspect.ScopeCount) inspect.ScopeCount {
	c.Tenant, c.Scope, c.Named = k.tenant, k.String(), !k.declared()
	return c
}

// countVerdict counts an attempt with this verdict.
func countVerdict(s *inspect.ScopeCount, c decide.KeyVerdict) {
	switch c {
	case decide.KeyReplay, decide.KeyRefused:
		s.Replayed++
	case decide.KeyActive, decide.KeyStale, decide.KeyRetryable:
		s.Active++
	case decide.KeyMismatch:
		s.Mismatched++
	case decide.KeyGone:
		s.Expired++
	default:
		s.New++
	}
}
