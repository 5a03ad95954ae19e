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
	maxKinds      = 1000 // of all tenants together; then fifty of each are counted
)

// Counts tells how many instances there are of each workflow, version and state. It
// is cheap on large tables: up to 10,000 of a kind are counted, fewer where there are
// more than five kinds (50,000 together), and what is more is estimated by the
// planner. It says of each which it is. Of all tenants ("") everything is an estimate
// where they have more than 1,000 kinds together: of the workflows that this engine
// has, and of what the first of the tenants have.
//
// Errors: InvalidRequest, WorkflowNotFound, Unavailable, TimedOut.
func (e *Engine) Counts(ctx context.Context, f inspect.CountFilter) (inspect.Counts, error) {
	c := inspect.Counts{At: e.now().UTC(), Tenant: f.Tenant, Exact: true, Counts: []inspect.InstanceCount{}}
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
		var some []kind
		if list, some, err = l.counted(ctx, &f); some != nil && err == nil {
			c.Exact = false
			list, err = l.guessed(ctx, append(some, e.registry.kinds(&f)...))
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

// counted counts the kinds that a filter selects, each of a tenant by itself,
// unless they are too many: then it returns the first of them.
func (l *lister) counted(ctx context.Context, f *inspect.CountFilter) (list []inspect.InstanceCount, some []kind, err error) {
	bound := maxKinds
	if f.Tenant != "" { // the planner's guesses are of everybody's
		bound = math.MaxInt32 - 1
	}
	var s query
	s.withKinds(f)
	s.add(" LIMIT %s), most AS MATERIALIZED (SELECT least(%s::bigint, %s::bigint / greatest(count(*), 1)) AS n FROM kinds) ",
		bound+1, maxCounted, maxCountedAll)
	s.add(`SELECT k.*, (SELECT n FROM most), CASE WHEN (SELECT count(*) FROM kinds) <= %s THEN
	(SELECT count(*) FROM (SELECT FROM pawl.instance i WHERE i.tenant = k.tenant AND i.workflow = k.workflow AND i.definition = k.definition
		AND i.state = k.state AND i.open = k.open ORDER BY i.updated_at, i.id LIMIT (SELECT n + 1 FROM most)) AS x) ELSE 0 END FROM kinds AS k`, bound)
	found, err := l.query(ctx, &s)
	if err != nil {
		return nil, nil, err
	}
	var kinds []kind
	var counts []int64
	var most int64
	var k kind
	var n int64
	_, err = pgx.ForEachRow(found, []any{&k.tenant, &k.workflow, &k.definition, &k.state, &k.open, &most, &n}, func() error {
		kinds, counts = append(kinds, k), append(counts, n)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if len(kinds) > bound {
		return nil, kinds, nil
	}
	for i, k := range kinds {
		c := k.counted(counts[i])
		if c.Exact = c.Count <= most; !c.Exact {
			guess, err := l.expectedOf(ctx, k)
			if err != nil {
				return nil, nil, err
			}
			c.Count = max(c.Count, guess)
		}
		list = append(list, c)
	}
	return list, nil, nil
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
	for _, versions := range r.byName {
		for _, w := range versions {
			for _, state := range w.States {
				k := kind{workflow: w.Name, definition: w.Version, state: state, open: !w.IsFinal(state)}
				if k.selected(f) {
					list = append(list, k)
				}
			}
		}
	}
	return list
}

func (k kind) selected(f *inspect.CountFilter) bool {
	return (f.Workflow == "" || f.Workflow == k.workflow) && (f.Definition == 0 || f.Definition == k.definition) &&
		(len(f.States) == 0 || slices.Contains(f.States, k.state)) && (f.Open == nil || *f.Open == k.open)
}
