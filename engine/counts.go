package engine

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
)

// What is counted one by one, of each kind of instances of a tenant and together.
// What is more is estimated.
const (
	maxCounted    = 10_000
	maxCountedAll = 50_000
	maxKinds      = 1000              // of all tenants together; then fifty of each are counted
	maxWalked     = 10_000            // of all tenants, selected or not: each is a probe of an index
	everyKind     = math.MaxInt32 - 1 // of a tenant: the planner's guesses are of everybody's
)

// Counts tells how many instances there are of each workflow, version and state. It
// is cheap on large tables: up to 10,000 of a kind are counted, fewer where there are
// more than five kinds (50,000 together), and what is more is estimated by the
// planner. It says of each which it is. Of all tenants ("") everything is an estimate
// where a filter selects more than 1,000 kinds of theirs, or they have more than 10,000
// that it would have to look at: of the workflows that this engine has, and of what
// the first of the tenants have. The kinds of others are left out then.
//
// Errors: InvalidRequest, WorkflowNotFound, Unavailable, TimedOut.
func (e *Engine) Counts(ctx context.Context, f inspect.CountFilter) (inspect.Counts, error) {
	c := inspect.Counts{At: e.clock.Now().UTC(), Tenant: f.Tenant, Exact: true, Counts: []inspect.InstanceCount{}}
	if err := f.Check(); err != nil {
		return c, err
	}
	if f.Workflow != "" {
		if _, err := e.Workflow(f.Workflow, 0); err != nil {
			return c, err
		}
	}
	var list []inspect.InstanceCount
	err := e.queries.listing(ctx, func(l *lister) (err error) {
		kinds, whole, err := l.kinds(ctx, &f, walked(&f))
		if err != nil {
			return err
		}
		if c.Exact = whole && (f.Tenant != "" || len(kinds) <= maxKinds); c.Exact {
			list, err = l.counted(ctx, kinds)
		} else {
			list, err = l.guessed(ctx, append(kinds[:min(len(kinds), maxKinds)], e.registry.kinds(&f)...))
		}
		return err
	})
	if err != nil {
		return c, readError("counts", err)
	}
	for _, k := range list {
		c.Add(k)
	}
	slices.SortFunc(c.Counts, func(a, b inspect.InstanceCount) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), a.Definition-b.Definition, cmp.Compare(a.State, b.State))
	})
	return c, nil
}

// walked is how many kinds are looked at for those that a filter selects.
func walked(f *inspect.CountFilter) int {
	switch {
	case f.Tenant != "":
		return everyKind
	case f.Workflow == "" && f.Definition == 0 && len(f.States) == 0 && f.Open == nil: // all of them are
		return maxKinds
	}
	return maxWalked
}

// counted counts the instances of kinds, each of a tenant by itself.
func (l *lister) counted(ctx context.Context, kinds []kind) ([]inspect.InstanceCount, error) {
	most := min(maxCounted, int64(maxCountedAll/max(len(kinds), 1)))
	found, err := l.query(ctx, countOf(kinds, most+1))
	if err != nil {
		return nil, err
	}
	counts := make([]int64, len(kinds))
	var at, n int64
	if _, err = pgx.ForEachRow(found, []any{&at, &n}, func() error { counts[at-1] = n; return nil }); err != nil {
		return nil, err
	}
	list := make([]inspect.InstanceCount, len(kinds))
	for i, k := range kinds {
		c := k.counted(counts[i])
		if c.Exact = c.Count <= most; !c.Exact {
			guess, err := l.expectedOf(ctx, k)
			if err != nil {
				return nil, err
			}
			c.Count = max(c.Count, guess)
		}
		list[i] = c
	}
	return list, nil
}

// countOf is the statement that counts up to limit instances of each kind.
func countOf(kinds []kind, limit int64) *query {
	var tenants, workflows, states []string
	var definitions []int
	var open []bool
	for _, k := range kinds {
		tenants, workflows, states = append(tenants, k.tenant), append(workflows, k.workflow), append(states, string(k.state))
		definitions, open = append(definitions, k.definition), append(open, k.open)
	}
	s := &query{}
	s.add(`SELECT kinds.n, (SELECT count(*) FROM (SELECT FROM pawl.instance i WHERE i.tenant = kinds.tenant AND i.workflow = kinds.workflow
	AND i.definition = kinds.definition AND i.state = kinds.state AND i.open = kinds.open ORDER BY i.updated_at, i.id LIMIT %s) AS x)`, limit)
	return s.add(` FROM unnest(%s::text[], %s::text[], %s::integer[], %s::text[], %s::boolean[])
	WITH ORDINALITY AS kinds (tenant, workflow, definition, state, open, n)`,
		tenants, workflows, definitions, states, open)
}

// guessed estimates kinds of all tenants together, whosever they are. The planner
// expects a row where it knows of none.
func (l *lister) guessed(ctx context.Context, kinds []kind) (list []inspect.InstanceCount, err error) {
	done := map[kind]bool{}
	for _, k := range kinds {
		if k.tenant = ""; done[k] {
			continue
		}
		done[k] = true
		guess, err := l.expectedOf(ctx, k)
		if err != nil {
			return nil, err
		}
		if guess > 1 {
			list = append(list, k.counted(guess))
		}
	}
	return list, nil
}

// expectedOf is how many instances of a kind the planner expects, of all tenants
// for the kind of none.
func (l *lister) expectedOf(ctx context.Context, k kind) (int64, error) {
	var s query
	s.add("SELECT FROM pawl.instance WHERE workflow = %s AND definition = %s AND state = %s AND open = %s",
		k.workflow, k.definition, string(k.state), k.open)
	if k.tenant != "" {
		s.add(" AND tenant = %s", k.tenant)
	}
	return l.expected(ctx, l.tx, s.String(), s.args...)
}

func (k kind) counted(n int64) inspect.InstanceCount {
	return inspect.InstanceCount{Workflow: k.workflow, Definition: k.definition, State: k.state, Open: k.open, Count: n}
}

// kinds are those that a filter selects of the definitions that this node knows, of
// no tenant.
func (r *registry) kinds(f *inspect.CountFilter) (list []kind) {
	for _, w := range r.All() {
		for _, state := range w.States {
			k := kind{workflow: w.Name, definition: w.Version, state: state, open: !w.IsFinal(state)}
			if k.selected(f) {
				list = append(list, k)
			}
		}
	}
	return list
}
