package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
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
