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

func (s *stats) count(o *op) {
	if o.p.Resumed == nil {
		s.verdicts[o.verdict].Add(1)
	}
}

// Stats are counters since the start.
type Stats struct {
	Claims  map[string]int64 // answered commands by the verdict on their key
	Groups  int64            // committed
	Again   int64            // runs that lost to another transaction
	Lost    int64            // runs that lost their connection
	Splits  int64            // groups split to find the command that could not be stored
	Aside   int64            // commands that went to the retry lane
	Refused int64            // commands refused because there was no room for them
	Waiting int              // commands that wait for a committer
	Working time.Duration    // time with at least one running committer
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

// maxScopes bounds the scopes that are counted separately. Callers choose the names of scopes and tenants.
const maxScopes = 1000

// scopeKey identifies the scope by which attempts are counted: a tenant's workflow and transition, or a scope that a caller named. Without
// a tenant it collects the scopes of all tenants beyond the limit.
type scopeKey struct{ tenant, workflow, transition, named string }

// declared reports whether the scope comes from the declaration of a workflow, so that their number is bounded.
func (k scopeKey) declared() bool {
	return k.named == "" || strings.HasPrefix(k.named, transitions.InboxScope(""))
}

// rest returns the scope that collects those beyond the limit.
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

// scopes counts the answers of attempts by scope. It is locked once for each group.
type scopes struct {
	mu     sync.Mutex
	counts map[scopeKey]*scopeCounts
}

// scopeCounts are the attempts of a scope since the start, and the part that TakeScopes has returned.
type scopeCounts struct{ all, taken inspect.ScopeCount }

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

// of returns the counts of a scope, and adds them if necessary.
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

func (k scopeKey) entry(c inspect.ScopeCount) inspect.ScopeCount {
	c.Tenant, c.Scope, c.Named = k.tenant, k.String(), !k.declared()
	return c
}

// trace starts the span of a transaction if one of its commands is traced. The spans are linked to each other.
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
