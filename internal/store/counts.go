package store

import (
	"context"
	"math"

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

// Counts counts the instances that a filter selects, by kind, each of a tenant by
// itself. Where all tenants together have too many kinds it estimates them, of all
// tenants together, and those that are known besides; then it is not exact.
func (q *Reader) Counts(ctx context.Context, f *inspect.CountFilter, known []Kind) (list []inspect.InstanceCount, exact bool, err error) {
	exact = true
	err = q.listing(ctx, func(l *lister) (err error) {
		var some []Kind
		if list, some, err = l.counted(ctx, f); some != nil && err == nil {
			exact = false
			list, err = l.guessed(ctx, append(some, known...))
		}
		return err
	})
	if err != nil {
		return nil, false, ReadError("counts", err)
	}
	return list, exact, nil
}

// counted counts the kinds that a filter selects, each of a tenant by itself,
// unless they are too many: then it returns the first of them.
func (l *lister) counted(ctx context.Context, f *inspect.CountFilter) (list []inspect.InstanceCount, some []Kind, err error) {
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
	var kinds []Kind
	var counts []int64
	var most int64
	var k Kind
	var n int64
	_, err = pgx.ForEachRow(found, []any{&k.Tenant, &k.Workflow, &k.Definition, &k.State, &k.Open, &most, &n}, func() error {
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
func (l *lister) guessed(ctx context.Context, kinds []Kind) (list []inspect.InstanceCount, err error) {
	done := map[Kind]bool{}
	for _, k := range kinds {
		if k.Tenant = ""; done[k] {
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
func (l *lister) expectedOf(ctx context.Context, k Kind) (int64, error) {
	var s query
	s.add("SELECT FROM pawl.instance WHERE workflow = %s AND definition = %s AND state = %s AND open = %s",
		k.Workflow, k.Definition, string(k.State), k.Open)
	if k.Tenant != "" {
		s.add(" AND tenant = %s", k.Tenant)
	}
	return l.expected(ctx, l.tx, s.String(), s.args...)
}

func (k Kind) counted(n int64) inspect.InstanceCount {
	return inspect.InstanceCount{Workflow: k.Workflow, Definition: k.Definition, State: k.State, Open: k.Open, Count: n}
}
