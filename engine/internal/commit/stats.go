package commit

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
)

type stats struct {
	verdicts    [decide.KeyVerdicts]atomic.Int64
	groups      atomic.Int64
	again       atomic.Int64
	lost        atomic.Int64
	splits      atomic.Int64
	toRetryLane atomic.Int64
	refused     atomic.Int64
}

// count takes an attempt of a caller's that was answered.
func (s *stats) count(o *op) {
	if o.p.Resumed == nil {
		s.verdicts[o.verdict].Add(1)
	}
}

// Stats are counters since the start.
type Stats struct {
	Claims  map[string]int64 // answered commands by what their key amounted to
	Groups  int64            // committed
	Again   int64            // runs that another transaction won
	Lost    int64            // runs that lost their connection
	Splits  int64            // groups split to find the command that could not be stored
	Aside   int64            // commands that went to the retry lane
	Refused int64            // commands refused because there was no room for them
	Waiting int              // commands that wait for a committer now
	Working time.Duration    // for how long a committer was at work, one at least
}

// Stats reads the counters.
func (pipe *Pipeline) Stats() Stats {
	s := Stats{Claims: map[string]int64{}, Groups: pipe.stats.groups.Load(), Again: pipe.stats.again.Load(), Lost: pipe.stats.lost.Load(),
		Splits: pipe.stats.splits.Load(), Aside: pipe.stats.toRetryLane.Load(), Refused: pipe.stats.refused.Load(),
		Waiting: pipe.queue.depth()}
	for c := range decide.KeyVerdicts {
		s.Claims[decide.KeyVerdict(c).String()] = pipe.stats.verdicts[c].Load()
	}
	q := pipe.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.atWork(0)
	s.Working = q.worked
	return s
}

// maxScopes is how many scopes are counted one by one. Callers name scopes and tenants, so there may be any number.
const maxScopes = 1000

// scopeKey identifies the scope by which attempts are counted: a tenant's workflow and transition, or a scope that a caller named. Without
// a tenant it collects the scopes of all tenants beyond the limit.
type scopeKey struct{ tenant, workflow, transition, named string }

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

// scopes count how the attempts of callers were answered, by scope. It is locked once for a group.
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
		k := scopeKey{tenant: o.p.Tenant, named: o.p.Scope}
		if rest, ok := strings.CutPrefix(o.p.Scope, o.p.Workflow); ok && strings.HasPrefix(rest, ":") { // the default scope
			k = scopeKey{tenant: o.p.Tenant, workflow: o.p.Workflow, transition: o.p.Transition}
		}
		if c == nil || k != last {
			last, c = k, s.of(k)
		}
		switch o.verdict {
		case decide.KeyReplay, decide.KeyRefused:
			c.all.Replayed++
		case decide.KeyActive, decide.KeyStale, decide.KeyRetryable:
			c.all.Active++
		case decide.KeyMismatch:
			c.all.Mismatched++
		case decide.KeyGone:
			c.all.Expired++
		default:
			c.all.New++
		}
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

// shrink counts the smaller half of the scopes with the rest from here on. The rest is bounded: it is one for each declared scope, and one
// for all that callers named.
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

// trace begins the span of a transaction, if one of its commands is traced. It is linked to the spans of these, and they to it.
func (pipe *Pipeline) trace(ctx context.Context, ops []*op) tracing.Span {
	if pipe.config.Tracer == nil {
		return tracing.None
	}
	var links []tracing.Context
	var last tracing.Context
	for _, o := range ops {
		if o.p.Trace != "" && o.p.Trace != last { // a caller's many commands are in one span
			last = o.p.Trace
			links = append(links, last)
		}
	}
	if links == nil {
		return tracing.None
	}
	_, span := tracing.Start(ctx, pipe.config.Tracer, tracing.Step{Kind: tracing.Commit, Links: links, Count: len(ops)})
	if c := span.Context(); c != "" {
		var linked tracing.Span
		for _, o := range ops {
			if o.span != nil && o.span != linked {
				linked = o.span
				linked.Link(c)
			}
		}
	}
	return span
}
