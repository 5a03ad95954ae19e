package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inbox"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestMain(m *testing.M) { tables.Main(m) }

func table(pool store.Querier) *inbox.Table {
	return inbox.NewTable(pool, schema.For(schema.Default))
}

func message(id, body string) transitions.Message {
	return transitions.Message{Tenant: "default", Consumer: "bank", ID: id, Body: []byte(body)}
}

var (
	noon    = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	refusal = workflow.Refuse("no")
)

func TestAnyFailureTextIsStored(t *testing.T) {
	t.Parallel()
	list := table(tables.AsNode(t, pgtest.Pool(t), ""))
	for id, tt := range map[string]struct {
		failure error
		code    workflow.Code
		want    string
	}{
		"text":     {refusal, workflow.GuardRefused, "no"},
		"foreign":  {errors.New("secret"), workflow.Internal, "internal error"},
		"odd":      {workflow.Refuse("a\x00b\xff"), workflow.GuardRefused, "a\uFFFDb\uFFFD"},
		"long":     {workflow.Refuse("%s", strings.Repeat("é", 5000)), workflow.GuardRefused, strings.Repeat("é", 2048)},
		"at a cut": {workflow.Refuse("x%s", strings.Repeat("é", 5000)), workflow.GuardRefused, "x" + strings.Repeat("é", 2047) + "\uFFFD"},
		"fields": {&workflow.Error{Code: workflow.InvalidPayload, Message: "not valid", Fields: []workflow.FieldError{
			{Pointer: "/a", Message: "is missing"}, {Message: "is odd"}}}, workflow.InvalidPayload, "not valid; /a: is missing; is odd"},
	} {
		m := transitions.Message{Tenant: "default", Consumer: "bank", ID: id} // without a body
		if fresh, err := list.Put(t.Context(), m, transitions.About{}, tt.failure, noon); err != nil || !fresh {
			t.Errorf("%s: new %v, %v", id, fresh, err)
		}
		if fresh, err := list.Put(t.Context(), m, transitions.About{}, tt.failure, noon); err != nil || fresh {
			t.Errorf("%s: new again %v, %v", id, fresh, err)
		}
		got, err := list.Get(t.Context(), m.Ref())
		assert.Truef(t, err == nil && got.Failure == tt.want && got.Code == tt.code && got.CreatedAt.Equal(noon) && got.Deliveries == 2,
			"%s: %+v, %v", id, got, err)
	}
}

func TestUnavailableDiffersFromTimeout(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	list := table(pool)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	err := list.Done(gone, message("m", "").Ref())
	assert.Equalf(t, workflow.TimedOut, workflow.CodeOf(err), "got %v", err)
	pool.Close()
	m := message("m", "")
	_, put := list.Put(t.Context(), m, transitions.About{}, refusal, noon)
	_, get := list.Get(t.Context(), m.Ref())
	_, _, page := list.List(t.Context(), inspect.DeadMessageFilter{Tenant: "default", Limit: 1})
	_, forget := list.Forget(t.Context(), noon, 1)
	for _, err := range []error{put, get, page, forget, list.Done(t.Context(), m.Ref()), list.Retried(t.Context(), m.Ref(), "a", "", noon),
		list.Discard(t.Context(), m.Ref(), "a", "", noon, noon), list.Reopen(t.Context(), inspect.DeadMessage{MessageRef: m.Ref()}, noon)} {
		assert.Equalf(t, workflow.Unavailable, workflow.CodeOf(err), "got %v", err)
	}
}

// The list is read by index, whatever the server's statistics say about the tables.
func TestListReadsByIndex(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectTo(t, pgtest.Pool(t)) // the statistics of a pooler's sessions differ
	t.Run("empty", func(t *testing.T) { readByIndex(t, pool, "forget", "forget kept") })
	fill := `INSERT INTO pawl.inbox_dead SELECT 'default', 'c' || n % 5, n, sha256('x'), '', 0, '',
			CASE WHEN n % 10 = 0 THEN 'waiting' ELSE 'retried' END,
			'guard_refused', '', 1, now(), now(), 'a' FROM generate_series(1, 20000) AS n;
		INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, code, body,
			created_at, finished_at, expires_at)
			SELECT 'default', 'inbox:c' || n % 5, n, sha256('x'), 'failed_final', '', '', gen_random_uuid(), 'a', 409, '{}', now(), now(), now()
			FROM generate_series(1, 20000) AS n;
		INSERT INTO pawl.inbox_kept SELECT 'default', 'c' || n % 5, n, sha256('x'), '2026-01-02',
			'2026-01-02'::timestamptz + n * interval '1 minute', '', '' FROM generate_series(1, 20000) AS n`
	_, err := pool.Exec(t.Context(), fill)
	require.NoError(t, err)
	t.Run("full, with the statistics of the empty ones", func(t *testing.T) { readByIndex(t, pool) })
	_, err = pool.Exec(t.Context(), "ANALYZE")
	require.NoError(t, err)
	t.Run("full", func(t *testing.T) { readByIndex(t, pool) })
}

// readByIndex calls every method in its own transaction and checks how the server has read the
// tables. Statements that are planned each time may scan an empty table.
func readByIndex(t *testing.T, pool *pgxpool.Pool, mayScan ...string) {
	m := message("m", "x")
	f := inspect.DeadMessageFilter{Tenant: "default", Status: inspect.MessageWaiting, Limit: 10}
	ofOne := f
	ofOne.Consumer = "c0"
	for name, call := range map[string]func(ctx context.Context, l *inbox.Table) error{
		"put": func(ctx context.Context, l *inbox.Table) error {
			_, err := l.Put(ctx, m, transitions.About{}, refusal, noon)
			return errors.Join(err, l.Done(ctx, m.Ref()))
		},
		"get": func(ctx context.Context, l *inbox.Table) error {
			if _, err := l.Get(ctx, m.Ref()); workflow.CodeOf(err) != workflow.NotFound {
				return fmt.Errorf("found: %w", err)
			}
			return nil
		},
		"list":    func(ctx context.Context, l *inbox.Table) error { _, _, err := l.List(ctx, f); return err },
		"list of": func(ctx context.Context, l *inbox.Table) error { _, _, err := l.List(ctx, ofOne); return err },
		"reopen": func(ctx context.Context, l *inbox.Table) error {
			return l.Reopen(ctx, inspect.DeadMessage{MessageRef: m.Ref(), Code: workflow.GuardRefused}, noon)
		},
		"retried": func(ctx context.Context, l *inbox.Table) error { return l.Retried(ctx, m.Ref(), "a", "", noon) },
		"discard": func(ctx context.Context, l *inbox.Table) error {
			_, err := l.Put(ctx, m, transitions.About{}, refusal, noon)
			return errors.Join(err, l.Discard(ctx, m.Ref(), "a", "", noon, noon))
		},
		"keep": func(ctx context.Context, l *inbox.Table) error {
			kept := m
			kept.Keep = time.Hour
			_, err := l.Kept(ctx, m.Ref(), noon)
			return errors.Join(l.Keep(ctx, kept, noon), ignoreMissing(err))
		},
		"list kept": func(ctx context.Context, l *inbox.Table) error {
			_, _, err := l.ListKept(ctx, inspect.KeptMessageFilter{Tenant: "default", Limit: 10}, noon)
			return err
		},
		"list kept of": func(ctx context.Context, l *inbox.Table) error {
			_, _, err := l.ListKept(ctx, inspect.KeptMessageFilter{Tenant: "default", Consumer: "c0", Limit: 10}, noon)
			return err
		},
		"list kept with": func(ctx context.Context, l *inbox.Table) error {
			_, _, err := l.ListKept(ctx, inspect.KeptMessageFilter{Tenant: "default", Consumer: "c0", ID: "5", Limit: 10}, noon)
			return err
		},
		"forget kept": func(ctx context.Context, l *inbox.Table) error { _, err := l.ForgetKept(ctx, noon, 10); return err },
		"forget":      func(ctx context.Context, l *inbox.Table) error { _, err := l.Forget(ctx, noon, 10); return err },
	} {
		// A session reports its statistics between transactions, so each call has its own.
		conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
		require.NoError(t, err)
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		assert.NoError(t, call(t.Context(), table(tx)), name)
		var scans, rows int64
		require.NoError(t, tx.QueryRow(t.Context(), `SELECT sum(seq_scan), sum(idx_tup_fetch) FROM pg_stat_xact_user_tables
			WHERE relname IN ('inbox_dead', 'inbox_kept', 'command')`).Scan(&scans, &rows))
		var blocks int64 // of indexes: one may be read for many rows that it does not return
		require.NoError(t, tx.QueryRow(t.Context(), `SELECT sum(pg_stat_get_xact_blocks_fetched(indexrelid)) FROM pg_index
			WHERE indrelid = 'pawl.inbox_kept'::regclass`).Scan(&blocks))
		assert.Truef(t, blocks <= 30, "%s: %d blocks of indexes", name, blocks)
		assert.Truef(t, (scans <= 0 || slices.Contains(mayScan, name)) && rows <= 30, "%s: %d scans, %d rows", name, scans, rows)
		require.NoError(t, conn.Close(t.Context()))
	}
}

func ignoreMissing(err error) error {
	if workflow.CodeOf(err) == workflow.NotFound {
		return nil
	}
	return err
}

// A scrape reads as many rows as it counts, and one per tenant to find the next.
func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO pawl.inbox_dead (tenant, consumer, message, hash, type, size, body, status, code, failure, deliveries,
			created_at, updated_at)
		SELECT 't' || n % 20, 'bank', n, decode(repeat('00', 32), 'hex'), '', 0, '', 'waiting', 'invalid_payload', 'no', 1,
			now(), now() FROM generate_series(1, 2000) AS n`)
	const most = 100
	for _, when := range []string{"as they grew", "analyzed"} {
		read := pgtest.RowsRead(t, pool, inbox.WaitingSQL, "", most)
		assert.Truef(t, !(read > most+21), "%s: %v rows are read", when, read)
		exec("ANALYZE")
	}
	count, oldest, err := table(pool).Waiting(t.Context(), "", most)
	assert.Truef(t, err == nil && count == most && !oldest.IsZero(), "%d since %v, %v", count, oldest, err)
}
