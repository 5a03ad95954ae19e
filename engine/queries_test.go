package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
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
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

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

func TestInstancesAreFilteredByEverythingDeclared(t *testing.T) {
	t.Parallel()
	pool := database(t)
	gift := workflow.Define("gift", 1, workflow.Start("give", "open", none),
		workflow.On("end", workflow.From("open"), "settled", none)).Final("settled")
	e := newEngine(t, pool, func(c *engine.Config) { c.Workflows = append(c.Workflows, gift) })
	seedLoans(t, pool, 1000)
	submit(t, e, applied("L-1", 10))
	other := applied("L-1", 10)
	other.Tenant = "acme"
	submit(t, e, other)
	for _, tt := range []struct {
		name   string
		filter inspect.Filter
		want   int
	}{
		{"everything", inspect.Filter{}, 1001},
		{"another tenant", inspect.Filter{Tenant: "acme"}, 1},
		{"a tenant with nothing", inspect.Filter{Tenant: "nobody"}, 0},
		{"a workflow", inspect.Filter{Workflow: "gift"}, 500},
		{"a state", inspect.Filter{States: []workflow.State{"settled"}}, 100},
		{"a workflow in a state", inspect.Filter{Workflow: "loan", States: []workflow.State{"open"}}, 401},
		{"a state that is none", inspect.Filter{Workflow: "loan", States: []workflow.State{"nowhere"}}, 0},
		{"a business key", inspect.Filter{Workflow: "loan", BusinessKey: "L-1"}, 1},
		{"a business key in another state", inspect.Filter{Workflow: "loan", BusinessKey: "L-1", States: []workflow.State{"settled"}}, 0},
		{"a business key that is none", inspect.Filter{Workflow: "loan", BusinessKey: "L-2"}, 0},
		{"an attribute", inspect.Filter{Attributes: map[string]string{"customer": "c-7"}}, 10},
		{"an attribute of a workflow", inspect.Filter{Workflow: "loan", Attributes: map[string]string{"customer": "c-7"}}, 0},
		{"two attributes", inspect.Filter{Attributes: map[string]string{"customer": "c-1", "region": "north"}}, 1},
		{"two that never meet", inspect.Filter{Attributes: map[string]string{"customer": "c-7", "region": "r-8"}}, 0},
		{"an attribute that is none", inspect.Filter{Attributes: map[string]string{"colour": "red"}}, 0},
		{"a value like an operator", inspect.Filter{Attributes: map[string]string{"customer": `"} || '%'`}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, limit := range []int{0, 7, 1000} {
				tt.filter.Limit = limit
				if limit == 7 && tt.want > 200 {
					continue // the same, in very many pages
				}
				all := pages(t, e, tt.filter, func() {})
				assert.Lenf(t, all, tt.want, "pages of %d", limit)
				assert.Truef(t, slices.IsSortedFunc(all, func(a, b transitions.Instance) int {
					return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), bytes.Compare(a.ID[:], b.ID[:]))
				}), "pages of %d are not in the order of creation", limit)
			}
		})
	}
}

func TestAFilterThatMeansNothingIsRefused(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t))
	_, err := e.Read().Instances(t.Context(), inspect.Filter{BusinessKey: "L-1"})
	wantCode(t, err, workflow.InvalidRequest)
	_, err = e.Read().Instances(t.Context(), inspect.Filter{Workflow: "nothing"})
	wantCode(t, err, workflow.WorkflowNotFound)
}

func TestPageSizes(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool)
	seedLoans(t, pool, 1500)
	for limit, want := range map[int]int{0: 100, -1: 100, 1: 1, 1000: 1000, 5000: 1000} {
		page, err := e.Read().Instances(t.Context(), inspect.Filter{Limit: limit})
		assert.Truef(t, err == nil && len(page.Instances) == want && page.More,
			"limit %d: got %d, more %v, %v", limit, len(page.Instances), page.More, err)
	}
}

// Others insert before and behind the cursor while pages are read: instances that existed at the beginning are seen once.
func TestPagingIsStableUnderInserts(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool)
	seedLoans(t, pool, 300)
	there := map[uuid.UUID]int{}
	for _, i := range pages(t, e, inspect.Filter{}, func() {}) {
		there[i.ID] = 0
	}
	inserted := 0
	all := pages(t, e, inspect.Filter{Limit: 10}, func() {
		inserted++
		for behind, at := range []time.Duration{-time.Hour, time.Duration(inserted) * time.Second} { // fewer behind than a page has
			exec(t, pool, `INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
				SELECT 'default', gen_random_uuid(), 'loan', 1, 'open', 1, '{}', true, sha256('x'), now() + $2, now()
				FROM generate_series(1, $1)`, []int{20, 5}[behind], at)
		}
	})
	assert.Truef(t, len(all) > len(there), "%d instances were seen, so that nothing was inserted in between", len(all))
	seen := map[uuid.UUID]bool{}
	for _, i := range all {
		assert.Falsef(t, seen[i.ID], "%s was seen twice", i.ID)
		seen[i.ID] = true
	}
	for id := range there {
		assert.Truef(t, seen[id], "%s was never seen", id)
	}
}

// lastQuery remembers the last query that has a text in it.
type lastQuery struct {
	mu       sync.Mutex
	fragment string
	sql      string
	args     []any
}

func (q *lastQuery) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	q.mu.Lock()
	defer q.mu.Unlock()
	if strings.Contains(data.SQL, q.fragment) && !strings.HasPrefix(data.SQL, "EXPLAIN") {
		q.sql, q.args = data.SQL, data.Args
	}
	return ctx
}

// seen is that query.
func (q *lastQuery) seen() (sql string, args []any) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sql, q.args
}

func (q *lastQuery) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestReads_DatabaseOutage(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool)
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
		if told := string(transitions.ProblemOf(err).JSON()); strings.Contains(told, "pawl.") || strings.Contains(told, "relation") {
			t.Errorf("%s tells its caller %s", name, told)
		}
	}
	for _, table := range []string{"instance", "audit", "command", "log"} { // so that the engine can stop in peace
		exec(t, pool, fmt.Sprintf("ALTER TABLE pawl.gone_%[1]s RENAME TO %[1]s", table))
	}
}
