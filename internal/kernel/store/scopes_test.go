package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
)

// Invented scopes and tenants take bounded rows and lists, and every attempt is counted.
func TestRecordedScopesAreBounded(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	scopes := store.NewScopes(pool, schema.For(schema.Default))
	const rounds, each, most = 3, 1500, 2000
	for round := range rounds {
		list := []inspect.ScopeCount{{Tenant: "a", Scope: "order:pay", New: 100, Replayed: 7}}
		for i := range each {
			list = append(list, inspect.ScopeCount{Tenant: "a", Scope: fmt.Sprint("made up ", round, " ", i), Named: true, New: 1},
				inspect.ScopeCount{Tenant: fmt.Sprint(round, " ", i), Scope: "order:ship", Expired: 1})
		}
		require.NoError(t, scopes.Add(t.Context(), list))
	}
	var n int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM pawl.scope_day").Scan(&n); err != nil || n < most || n > most+2 {
		t.Errorf("%d rows, %v", n, err)
	}
	list, since, err := scopes.Read(t.Context(), "")
	require.Truef(t, err == nil && !since.IsZero() && len(list) <= 1003, "%d scopes since %v, %v", len(list), since, err)
	var sum inspect.ScopeCount
	for i := range list {
		sum.Merge(&list[i])
	}
	assert.Equal(t, (inspect.ScopeCount{New: rounds * (100 + each), Replayed: rounds * 7, Expired: rounds * each}), sum, "all together")
	assert.Equalf(t, (inspect.ScopeCount{Tenant: "a", Scope: "order:pay", New: rounds * 100, Replayed: rounds * 7}), list[2],
		"the scope with many attempts is not beside the rest: %+v", list[:3])
}

func TestMergeScopesIsBounded(t *testing.T) {
	t.Parallel()
	list := []inspect.ScopeCount{{Tenant: "a", Scope: "order:pay", New: 1}}
	list = inspect.MergeScopes(list, []inspect.ScopeCount{
		{Tenant: "a", Scope: "order:pay", New: 2}, {Tenant: "a", Scope: "dock", Named: true, New: 3},
		{Tenant: "b", Scope: "order:pay", New: 4}, {Tenant: "b", Scope: "till", Named: true, New: 5},
		{Tenant: "c", Scope: "till", Named: true, New: 6},
	}, 2)
	want := []inspect.ScopeCount{{Tenant: "a", Scope: "order:pay", New: 3}, {Tenant: "a", Scope: "dock", Named: true, New: 3},
		{Scope: "order:pay", New: 4}, {Scope: "other", Named: true, New: 11}}
	assert.Equalf(t, fmt.Sprint(want), fmt.Sprint(list), "got  %+v\nwant %+v", list, want)
}
