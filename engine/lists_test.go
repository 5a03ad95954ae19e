package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// dawn is when the first instance of seedTimes was created.
var dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// seedTimes inserts n instances of two workflows, two definitions and three states,
// created a minute apart, and updated up to an hour after that, many at one time.
func seedTimes(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	exec(t, pool, `INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, attributes, open, chain, created_at,
		updated_at)
		SELECT CASE WHEN i % 20 = 3 THEN 'acme' ELSE 'default' END, gen_random_uuid(), CASE WHEN i % 3 = 0 THEN 'gift' ELSE 'loan' END,
			1 + (i % 5 = 0)::int,
			s, 1, '{}', jsonb_build_object('customer', 'c-' || i % 100, 'region', 'r-' || i % 2), s <> 'settled', sha256('x'), at,
				at + (i % 13) * 5 * interval '1 minute'
		FROM (SELECT i, (ARRAY['open', 'settled', 'settled', 'asked'])[1 + i % 4] AS s, $2::timestamptz + i * interval '1 minute' AS at
			FROM generate_series(0, $1 - 1) i) AS x`,
		n, dawn)
}

// lists is an engine with the workflows of seedTimes.
func lists(t testing.TB, pool *pgxpool.Pool) *engine.Engine {
	t.Helper()
	gift := workflow.Define("gift", 1, workflow.Start("give", "open", none),
		workflow.On("end", workflow.From("open"), "settled", none)).Final("settled")
	return newEngine(t, pool, func(c *engine.Config) { c.Workflows = append(c.Workflows, gift) })
}

// everything reads all instances of a tenant as they are.
func everything(t testing.TB, pool *pgxpool.Pool, tenant string) []transitions.Instance {
	t.Helper()
	found, err := pool.Query(t.Context(), `SELECT id, workflow, definition, state, open, attributes, created_at, updated_at FROM pawl.instance
		WHERE tenant = $1`, tenant)
	require.NoError(t, err)
	all, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (i transitions.Instance, err error) {
		err = row.Scan(&i.ID, &i.Workflow, &i.Definition, &i.State, &i.Open, &i.Attributes, &i.CreatedAt, &i.UpdatedAt)
		return i, err
	})
	require.NoError(t, err)
	return all
}

// selects is what a filter means, in Go.
func selects(f *inspect.Filter, i *transitions.Instance) bool {
	within := func(at, after, before time.Time) bool {
		return (after.IsZero() || !at.Before(after)) && (before.IsZero() || at.Before(before))
	}
	for name, value := range f.Attributes {
		if i.Attributes[name] != value {
			return false
		}
	}
	for name, r := range f.Ranges {
		value, has := i.Attributes[name]
		if !has || value < r.From || r.Before != "" && value >= r.Before || !strings.HasPrefix(value, r.Prefix) {
			return false
		}
	}
	return (f.Workflow == "" || f.Workflow == i.Workflow) && (f.Definition == 0 || f.Definition == i.Definition) &&
		(len(f.States) == 0 || slices.Contains(f.States, i.State)) && (f.Open == nil || *f.Open == i.Open) &&
		within(i.CreatedAt, f.CreatedAfter, f.CreatedBefore) && within(i.UpdatedAt, f.UpdatedAfter, f.UpdatedBefore)
}

// anyFilter is a filter by some of what there is.
func anyFilter(random *rand.Rand, minutes int) (f inspect.Filter) {
	moment := func() time.Time { return dawn.Add(time.Duration(random.IntN(minutes)) * time.Minute) }
	if random.IntN(2) == 0 {
		f.Workflow = []string{"loan", "gift"}[random.IntN(2)]
	}
	if random.IntN(3) == 0 {
		f.Definition = 1 + random.IntN(3)
	}
	if random.IntN(2) == 0 {
		f.States = []workflow.State{"open", "asked", "settled", "nowhere"}[random.IntN(3):]
	}
	if random.IntN(2) == 0 {
		f.Open = new(bool)
		*f.Open = random.IntN(2) == 0
	}
	if random.IntN(3) == 0 && f.Workflow != "gift" { // which declares none
		f.Attributes = map[string]string{"customer": fmt.Sprintf("c-%d", random.IntN(101))}
	}
	if random.IntN(4) == 0 && f.Workflow != "gift" {
		f.Ranges = map[string]inspect.Range{"customer": []inspect.Range{
			{Prefix: "c-1"}, {From: "c-5"}, {Before: "c-3"}, {From: "c-2", Before: "c-22", Prefix: "c-2"},
		}[random.IntN(4)]}
	}
	if random.IntN(3) == 0 {
		f.CreatedAfter = moment()
	} else if random.IntN(3) == 0 {
		f.CreatedBefore = moment()
	}
	if random.IntN(3) == 0 {
		f.UpdatedBefore = moment()
		f.UpdatedAfter = f.UpdatedBefore.Add(-time.Duration(1+random.IntN(minutes)) * time.Minute)
	}
	f.Order = inspect.Order(random.IntN(2))
	f.Limit = []int{0, 3, 40, 1000}[random.IntN(4)]
	return f
}

func TestListsAreWhatTheirFiltersMean(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := lists(t, pool)
	const n = 900
	seedTimes(t, pool, n)
	for _, tenant := range []string{"default", "acme"} {
		all := everything(t, pool, tenant)
		orders := map[inspect.Order]func(a, b transitions.Instance) int{
			inspect.ByCreation: func(a, b transitions.Instance) int {
				return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), bytes.Compare(a.ID[:], b.ID[:]))
			},
			inspect.ByUpdate: func(a, b transitions.Instance) int {
				if c := b.UpdatedAt.Compare(a.UpdatedAt); c != 0 {
					return c
				}
				return bytes.Compare(b.ID[:], a.ID[:])
			},
		}
		random := rand.New(rand.NewPCG(1, 2))
		for range 50 {
			f := anyFilter(random, n)
			f.Tenant = tenant
			var want, got []uuid.UUID
			slices.SortFunc(all, orders[f.Order])
			for i := range all {
				if selects(&f, &all[i]) {
					want = append(want, all[i].ID)
				}
			}
			for _, i := range pages(t, e, f, func() {}) {
				got = append(got, i.ID)
			}
			assert.Truef(t, slices.Equal(got, want), "%+v: got %d, want %d, or in another order", f, len(got), len(want))
		}
	}
}

func TestListsRefuseWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t))
	for name, f := range map[string]inspect.Filter{
		"a business key without a workflow": {BusinessKey: "L-1"},
		"a definition that is none":         {Definition: -1},
		"a definition that is too large":    {Definition: 1 << 40},
		"an order that is none":             {Order: 7},
		"created in no time":                {CreatedAfter: dawn, CreatedBefore: dawn},
		"updated in no time":                {UpdatedAfter: dawn, UpdatedBefore: dawn.Add(-time.Second)},
		"a range of nothing":                {Ranges: map[string]inspect.Range{"customer": {From: "b", Before: "b"}}},
		"a range of an unknown attribute":   {Workflow: "loan", Ranges: map[string]inspect.Range{"size": {From: "1"}}},
		"a prefix that is no text":          {Ranges: map[string]inspect.Range{"customer": {Prefix: "\x00"}}},
		"a prefix that is too long":         {Ranges: map[string]inspect.Range{"customer": {Prefix: strings.Repeat("x", 256)}}},
	} {
		_, err := e.Read().Instances(t.Context(), f)
		assert.Equalf(t, workflow.InvalidRequest, workflow.CodeOf(err), "%s: %v", name, err)
	}
}

// An instance that is updated while a list is read in the order of updates is seen at most once; others are seen exactly once.
func TestListByUpdate_MovingInstances(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := lists(t, pool)
	seedTimes(t, pool, 400)
	random, moved := rand.New(rand.NewPCG(3, 4)), map[uuid.UUID]bool{}
	there := everything(t, pool, "default")
	all := pages(t, e, inspect.Filter{Order: inspect.ByUpdate, Limit: 10}, func() {
		for range 5 {
			id := there[random.IntN(len(there))].ID
			exec(t, pool, "UPDATE pawl.instance SET updated_at = now(), state = 'asked', open = true WHERE id = $1", id)
			moved[id] = true
		}
	})
	seen := map[uuid.UUID]int{}
	for _, i := range all {
		seen[i.ID]++
	}
	for _, i := range there {
		n := seen[i.ID]
		assert.Truef(t, n <= 1 && (n != 0 || moved[i.ID]), "%s was seen %d times, moved %t", i.ID, n, moved[i.ID])
	}
	first, err := e.Read().Instances(t.Context(), inspect.Filter{Order: inspect.ByUpdate, Limit: 1})
	assert.Truef(t, err == nil && len(first.Instances) == 1 && moved[first.Instances[0].ID],
		"what moved last is not the first: %+v, %v", first, err)
}

// A page ends after a bounded number of rows, even if a filter selects few rows of a large table, and the next page continues there.
func TestAPageLooksAtSoManyAndThenAnotherGoesOn(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := lists(t, pool)
	exec(t, pool, `INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, attributes, created_at,
			updated_at)
		SELECT 'default', gen_random_uuid(), 'loan', 1, CASE WHEN i % 2 = 0 THEN 'open' ELSE 'settled' END, 1, '{}', i % 2 = 0, sha256('x'),
			jsonb_build_object('customer', CASE WHEN i < 3 THEN 'a' ELSE 'b' END),
			$1::timestamptz + i * interval '1 second',
			$1::timestamptz + i * interval '1 second' FROM generate_series(0, 24999) i`, dawn)
	first := map[string]inspect.Range{"customer": {Prefix: "a"}}
	for _, order := range []inspect.Order{inspect.ByCreation, inspect.ByUpdate} {
		for _, f := range []inspect.Filter{
			{Order: order, Ranges: first},
			{Order: order, Workflow: "loan", Ranges: first},
			{Order: order, Attributes: map[string]string{}, Ranges: first, Definition: 1},
		} {
			var found, count int
			for {
				page, err := e.Read().Instances(t.Context(), f)
				require.NoError(t, err)
				found, count = found+len(page.Instances), count+1
				if !page.More {
					break
				}
				f.After = page.Next
				require.Truef(t, count <= 5, "%+v does not end", f)
			}
			assert.Truef(t, found == 3 && count == 3, "%+v: %d instances on %d pages", f, found, count)
		}
	}
}

// told remembers the statements of lists and counts.
type told struct {
	mu    sync.Mutex
	begin string // what begins their transaction
	list  []pgx.TraceQueryStartData
}

func (q *told) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	q.mu.Lock()
	defer q.mu.Unlock()
	if strings.HasPrefix(data.SQL, "BEGIN ISOLATION LEVEL REPEATABLE READ") {
		q.begin = data.SQL
	}
	if strings.Contains(data.SQL, " AS entries") || strings.Contains(data.SQL, " AS kinds") || strings.Contains(data.SQL, "kinds AS ") ||
		strings.Contains(data.SQL, "RECURSIVE child") || strings.Contains(data.SQL, " AS leased") ||
		strings.Contains(data.SQL, " AS looked") || strings.Contains(data.SQL, "WHERE paused AND") || strings.HasPrefix(data.SQL, "SET LOCAL") {
		q.list = append(q.list, data)
	}
	return ctx
}

func (q *told) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (q *told) take() []pgx.TraceQueryStartData {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	return list
}

// Every statement of a list and of counts finds what it reads by an index, whatever
// the planner believes of the table, and puts no more in order than a page looks at.
func TestListsAndCountsAreRangesOfIndexes(t *testing.T) {
	t.Parallel()
	pool := database(t)
	last := &told{}
	traced := poolWith(t, pool, last)
	e := lists(t, traced)
	yes := true
	filters := map[string]inspect.Filter{
		"everything":                 {},
		"open":                       {Open: &yes},
		"a workflow in a state":      {Workflow: "loan", States: []workflow.State{"asked"}},
		"some states":                {States: []workflow.State{"asked", "open"}},
		"a definition":               {Workflow: "loan", Definition: 2},
		"an attribute":               {Attributes: map[string]string{"customer": "c-1"}},
		"an attribute in a state":    {Workflow: "loan", States: []workflow.State{"open"}, Attributes: map[string]string{"customer": "c-1"}},
		"an attribute of half":       {Attributes: map[string]string{"region": "r-1"}},
		"a business key":             {Workflow: "loan", BusinessKey: "L-1"},
		"created before":             {CreatedBefore: dawn.Add(time.Hour)},
		"created late":               {CreatedAfter: dawn.Add(39_000 * time.Minute)},
		"a prefix of an attribute":   {Workflow: "loan", Ranges: map[string]inspect.Range{"customer": {Prefix: "c-9"}}},
		"a range of an attribute":    {Ranges: map[string]inspect.Range{"customer": {From: "c-5", Before: "c-6"}}},
		"open and updated in a time": {Open: &yes, UpdatedAfter: dawn.Add(time.Hour), UpdatedBefore: dawn.Add(2 * time.Hour)},
	}
	explain := func(t *testing.T) {
		for name, f := range filters {
			for _, order := range []inspect.Order{inspect.ByCreation, inspect.ByUpdate} {
				f.Order, f.Limit = order, 10
				page, err := e.Read().Instances(t.Context(), f)
				for page.More && err == nil && f.After == (inspect.Place{}) { // and the second page
					f.After = page.Next
					page, err = e.Read().Instances(t.Context(), f)
				}
				require.NoError(t, err)
				f.After = inspect.Place{}
				wantRanges(t, pool, last, fmt.Sprintf("%s, order %d", name, order))
			}
		}
		some, half := map[string]string{"customer": "c-1"}, map[string]string{"region": "r-1"}
		for _, f := range []inspect.CountFilter{{}, {Tenant: "default"}, {Tenant: "default", Workflow: "loan", Open: &yes},
			{Tenant: "default", Attributes: some}, {Tenant: "default", Workflow: "loan", Attributes: half}, {Attributes: some}} {
			_, err := e.Read().Counts(t.Context(), f)
			require.NoError(t, err)
			wantRanges(t, pool, last, fmt.Sprintf("counts of %+v", f))
		}
	}
	// Whatever is planned for a table that is empty is planned again when it is not.
	t.Run("empty", explain)
	exec(t, pool, "VACUUM ANALYZE pawl.instance")
	seedTimes(t, pool, 40_000)
	t.Run("full, with the statistics of the empty one", explain)
	exec(t, pool, "VACUUM ANALYZE pawl.instance")
	t.Run("full", explain)
}

func wantRanges(t *testing.T, pool *pgxpool.Pool, last *told, name string) {
	t.Helper()
	statements := last.take()
	tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{BeginQuery: last.begin})
	require.NoError(t, err)
	defer tx.Rollback(context.Background())
	assert.NotEqualf(t, 0, len(statements), "%s asked nothing", name)
	for _, s := range statements {
		if strings.HasPrefix(s.SQL, "SET LOCAL") { // what is planned after it is planned under it
			if _, err := tx.Exec(t.Context(), s.SQL); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, step := range pgtest.Explain(t, tx, "ANALYZE, ", s.SQL, s.Args...) {
			assert.Truef(t, step.Type != "Seq Scan" && (step.Type != "Index Scan" || step.Cond != ""),
				"%s: %s of %s, %v\n%s", name, step.Type, step.Relation, s.Args, s.SQL)
			// Of attributes it may have to read who has them, but none of the rows.
			assert.Falsef(t, step.Rows > 10_001 && step.Index != "instance_attributes",
				"%s: %s %s has %d rows, %v\n%s", name, step.Type, step.Index, int(step.Rows), s.Args, s.SQL)
		}
	}
}

// The order of creation is that of the times, although ids are hashes of business keys and an import happened before.
func TestListsOldestFirst(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool)
	year := time.Now().Add(-365 * 24 * time.Hour).Truncate(time.Second)
	var want []uuid.UUID
	for i := range 12 {
		c := applied(fmt.Sprint("L-", i), 1)
		if i == 11 {
			c.HappenedAt = year
		}
		want = append(want, submit(t, e, c).Instance)
	}
	want = append(want[11:], want[:11]...)
	var got []uuid.UUID
	list := pages(t, e, inspect.Filter{Limit: 5}, func() {})
	for _, i := range list {
		got = append(got, i.ID)
	}
	assert.Truef(t, slices.Equal(got, want), "got %v, want %v", got, want)
	assert.Truef(t, list[0].CreatedAt.Equal(year) && !list[0].UpdatedAt.Before(time.Now().Add(-time.Hour)),
		"import: created at %s, updated at %s", list[0].CreatedAt, list[0].UpdatedAt)
	intact(t, e)
}
