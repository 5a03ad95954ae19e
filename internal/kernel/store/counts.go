package store

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
)

// Limits of counting, of each kind of instances of a tenant and together. The rest is estimated.
const (
	maxCounted    = 10_000
	maxCountedAll = 50_000
	maxKinds      = 1000              // of all tenants together; then fifty of each are counted
	maxWalked     = 10_000            // of all tenants, selected or not: each is a probe of an index
	everyKind     = math.MaxInt32 - 1 // of a tenant: the planner's guesses are of everybody's
)

// Counts counts the selected instances by kind, each tenant separately. If all tenants together have too many kinds, it estimates these and
// the known kinds over all tenants, and reports that it is not exact.
func (q *Reader) Counts(ctx context.Context, f *inspect.CountFilter, known []Kind) (list []inspect.InstanceCount, exact bool, err error) {
	err = q.listing(ctx, "counts", func(l *lister) error {
		if len(f.Attributes) > 0 {
			list, exact, err = l.countedWith(ctx, f)
			return err
		}
		kinds, whole, err := l.kinds(ctx, f, walked(f))
		if err != nil {
			return err
		}
		if exact = whole && (f.Tenant != "" || len(kinds) <= maxKinds); exact {
			list, err = l.counted(ctx, kinds)
		} else {
			list, err = l.guessed(ctx, append(kinds[:min(len(kinds), maxKinds)], known...))
		}
		return err
	})
	return list, exact, err
}

// walked returns how many kinds to examine for a filter.
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
func (l *lister) counted(ctx context.Context, kinds []Kind) ([]inspect.InstanceCount, error) {
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
			guess, err := l.expectedOf(ctx, k, "")
			if err != nil {
				return nil, err
			}
			c.Count = max(c.Count, guess)
		}
		list[i] = c
	}
	return list, nil
}

// countOf returns the statement that counts up to limit instances of each kind.
func countOf(kinds []Kind, limit int64) *query {
	var tenants, workflows, states []string
	var definitions []int
	var open []bool
	for _, k := range kinds {
		tenants, workflows, states = append(tenants, k.Tenant), append(workflows, k.Workflow), append(states, string(k.State))
		definitions, open = append(definitions, k.Definition), append(open, k.Open)
	}
	s := &query{}
	s.add(`SELECT kinds.n, (SELECT count(*) FROM (SELECT FROM {pawl}.instance i WHERE i.tenant = kinds.tenant AND i.workflow = kinds.workflow
	AND i.definition = kinds.definition AND i.state = kinds.state AND i.open = kinds.open ORDER BY i.updated_at, i.id LIMIT %s) AS x)`, limit)
	return s.add(` FROM unnest(%s::text[], %s::text[], %s::integer[], %s::text[], %s::boolean[])
	WITH ORDINALITY AS kinds (tenant, workflow, definition, state, open, n)`,
		tenants, workflows, definitions, states, open)
}

// guessed estimates kinds over all tenants. The planner expects one row of an unknown kind.
func (l *lister) guessed(ctx context.Context, kinds []Kind) (list []inspect.InstanceCount, err error) {
	done := map[Kind]bool{}
	for _, k := range kinds {
		if k.Tenant = ""; done[k] {
			continue
		}
		done[k] = true
		guess, err := l.expectedOf(ctx, k, "")
		if err != nil {
			return nil, err
		}
		if guess > 1 {
			list = append(list, k.counted(guess))
		}
	}
	return list, nil
}

// countedWith counts instances by their attributes, and estimates them where the index of attributes has more than are counted.
func (l *lister) countedWith(ctx context.Context, f *inspect.CountFilter) (list []inspect.InstanceCount, exact bool, err error) {
	attributes, err := marshalAttributes(f.Attributes)
	if err != nil {
		return nil, false, err
	}
	few, err := l.fewWithAttributes(ctx, &inspect.Filter{Tenant: f.Tenant, Attributes: f.Attributes}, attributes)
	if err != nil {
		return nil, false, err
	}
	if few == nil {
		list, err = l.expectedWith(ctx, f, attributes)
		return list, false, err
	}
	var s query
	s.WriteString("SELECT workflow, definition, state, open, count(*) FROM {pawl}.instance WHERE ")
	withAttributes(&s, f.Tenant, attributes)
	s.ofKind(f)
	s.WriteString(" GROUP BY workflow, definition, state, open")
	found, err := l.query(ctx, &s)
	if err != nil {
		return nil, false, err
	}
	list, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (c inspect.InstanceCount, err error) {
		err = row.Scan(&c.Workflow, &c.Definition, &c.State, &c.Open, &c.Count)
		c.Exact = true
		return c, err
	})
	return list, true, err
}

// expectedWith estimates the instances of each kind that have attributes.
func (l *lister) expectedWith(ctx context.Context, f *inspect.CountFilter, attributes string) (list []inspect.InstanceCount, err error) {
	kinds, _, err := l.kinds(ctx, f, maxKinds)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		guess, err := l.expectedOf(ctx, k, attributes)
		if err != nil {
			return nil, err
		}
		if guess > 1 {
			list = append(list, k.counted(guess))
		}
	}
	return list, nil
}

// expectedOf returns how many instances of a kind the planner expects: of its tenant or, with "", of all, and with the attributes if any
// are given.
func (l *lister) expectedOf(ctx context.Context, k Kind, attributes string) (int64, error) {
	var s query
	s.add("SELECT FROM {pawl}.instance WHERE workflow = %s AND definition = %s AND state = %s AND open = %s",
		k.Workflow, k.Definition, string(k.State), k.Open)
	if k.Tenant != "" {
		s.add(" AND tenant = %s", k.Tenant)
	}
	if attributes != "" {
		s.add(" AND attributes @> %s::jsonb", attributes)
	}
	return l.expected(ctx, l.tx, s.String(), s.args...)
}

func (k Kind) counted(n int64) inspect.InstanceCount {
	return inspect.InstanceCount{Workflow: k.Workflow, Definition: k.Definition, State: k.State, Open: k.Open, Count: n}
}
