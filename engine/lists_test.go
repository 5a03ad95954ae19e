package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
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
			FROM generate_series(0, $1 - 1) i) AS x`, n, dawn)
}

func gifts() *workflow.Definition[loan] {
	return workflow.Define("gift", 1, workflow.Start("give", "open", none), workflow.On("end", workflow.From("open"), "settled", none)).
		Final("settled")
}

// lists is an engine with the workflows of seedTimes.
func lists(t testing.TB, pool *pgxpool.Pool) *engine.Engine {
	t.Helper()
	return newEngine(t, pool, flows(loans(1), gifts()))
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

// seedLoans inserts n open loans and every tenth settled, of customers c-0 to
// c-99 in regions of ten.
func seedLoans(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	exec(t, pool, `INSERT INTO pawl.instance (tenant, id, workflow, definition, business_key, state, version, data, attributes, open, chain,
		created_at, updated_at)
		SELECT 'default', gen_random_uuid(), CASE WHEN i % 2 = 0 THEN 'loan' ELSE 'gift' END, 1, NULL,
			CASE WHEN i % 10 = 0 THEN 'settled' ELSE 'open' END,
			1, '{}', jsonb_build_object('customer', 'c-' || i % 100, 'region', 'r-' || i % 10), i % 10 <> 0, sha256('x'), now(), now()
		FROM generate_series(0, $1 - 1) i`, n)
	exec(t, pool, "ANALYZE pawl.instance")
}

// pages reads every page of a filter.
func pages(t testing.TB, e *engine.Engine, f inspect.Filter, between func()) (all []transitions.Instance) {
	t.Helper()
	for {
		page, err := e.Read().Instances(t.Context(), f)
		require.NoError(t, err)
		require.Falsef(t, f.Limit > 0 && len(page.Instances) > f.Limit, "%d instances on a page of %d", len(page.Instances), f.Limit)
		all = append(all, page.Instances...)
		if !page.More {
			return all
		}
		f.After = page.Next
		between()
	}
}

func TestPageSizes(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	seedLoans(t, pool, 1500)
	for limit, want := range map[int]int{0: 100, -1: 100, 1: 1, 1000: 1000, 5000: 1000} {
		page, err := e.Read().Instances(t.Context(), inspect.Filter{Limit: limit})
		assert.Truef(t, err == nil && len(page.Instances) == want && page.More,
			"limit %d: got %d, more %v, %v", limit, len(page.Instances), page.More, err)
	}
}

func TestReads_DatabaseOutage(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	reads := map[string]func(context.Context) error{
		"Instance":      func(ctx context.Context) error { _, err := e.Read().Instance(ctx, "", uuid.New()); return err },
		"InstanceByKey": func(ctx context.Context) error { _, err := e.Read().InstanceByKey(ctx, "", "loan", "L-1"); return err },
		"View":          func(ctx context.Context) error { _, err := e.Read().View(ctx, "", uuid.New()); return err },
		"Counts":        func(ctx context.Context) error { _, err := e.Read().Counts(ctx, inspect.CountFilter{}); return err },
		"Instances":     func(ctx context.Context) error { _, err := e.Read().Instances(ctx, inspect.Filter{}); return err },
		"History":       func(ctx context.Context) error { _, err := e.Read().History(ctx, "", uuid.New(), 0, 1); return err },
		"Explain":       func(ctx context.Context) error { _, err := e.Read().Explain(ctx, "", uuid.New(), "", nil); return err },
		"Command": func(ctx context.Context) error {
			_, err := e.Read().Command(ctx, transitions.Ref{Scope: "s", Key: "k"})
			return err
		},
		"Verify": func(ctx context.Context) error { _, err := e.Admin().Verify(ctx, "", uuid.Nil); return err },
		"Head":   func(ctx context.Context) error { _, err := e.Read().Head(ctx, ""); return err },
		"Submit by id": func(ctx context.Context) error {
			_, err := e.Submit(ctx, transitions.Command{Instance: uuid.New(), Transition: "pay", Key: "k"})
			return err
		},
		"DryRun": func(ctx context.Context) error { _, err := e.DryRun(ctx, on("pay", "L-1", "", 1, "")); return err },
	}
	for name, read := range reads {
		err := read(ctx)
		assert.Equalf(t, workflow.TimedOut, workflow.CodeOf(err), "%s, canceled: got %v", name, err)
	}
	for _, table := range []string{"instance", "audit", "command", "log"} {
		exec(t, pool, fmt.Sprintf("ALTER TABLE pawl.%[1]s RENAME TO gone_%[1]s", table))
	}
	for name, read := range reads {
		err := read(t.Context())
		assert.Equalf(t, workflow.Unavailable, workflow.CodeOf(err), "%s, broken: got %v", name, err)
		told := string(transitions.ProblemOf(err).JSON())
		assert.Truef(t, !strings.Contains(told, "pawl.") && !strings.Contains(told, "relation"), "%s tells its caller %s", name, told)
	}
	for _, table := range []string{"instance", "audit", "command", "log"} { // so that the engine can stop in peace
		exec(t, pool, fmt.Sprintf("ALTER TABLE pawl.gone_%[1]s RENAME TO %[1]s", table))
	}
}
