package doctor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

// These tests disturb others on the same server, so they use their own and do not run in parallel. It has fsync off, like the shared one,
// because each test creates a database.
func TestMain(m *testing.M) {
	server, err := localpg.Start(context.Background(), localpg.Options{Ephemeral: true, Settings: map[string]string{
		"max_prepared_transactions": "5", "archive_mode": "on",
	}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for name, value := range map[string]string{"DATABASE_URL": server.URL(), pgtest.EnvBouncer: ""} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	pgtest.MainWith(m, well)
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// well makes a database with nothing to find: its tables are as a node leaves them that does retention.
func well(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := schema.Migrate(ctx, pool, schema.Default); err != nil {
		return err
	}
	for _, sql := range []string{
		`UPDATE pawl.leadership SET claimed_by = 'node', claimed_at = now(), locked_until = now() + interval '1 day'`,
		`ALTER SYSTEM SET archive_command = 'true'`, `SELECT pg_reload_conf()`, // or all that the tests write would be kept
	} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

func orders() []workflow.Source { return []workflow.Source{order.Workflow(provider.New())} }

// patient is a database that is to be broken.
type patient struct {
	testing.TB
	url    string
	pool   *pgxpool.Pool
	config Config
	limits limits
}

func newPatient(t testing.TB, url string) *patient {
	t.Helper()
	p := &patient{TB: t, url: url, limits: defaults}
	p.config = Config{URL: url, Schema: schema.Default, Workflows: orders(), limits: &p.limits}
	pool, err := pgxpool.New(t.Context(), pgtest.Direct(t, url))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	p.pool = pool
	return p
}

// exec runs statements, each by itself.
func (p *patient) exec(statements ...string) {
	p.Helper()
	p.do(p.Context(), statements...)
}

// after has statements run when the test is over.
func (p *patient) after(statements ...string) {
	p.Cleanup(func() { p.do(context.Background(), statements...) })
}

func (p *patient) do(ctx context.Context, statements ...string) {
	p.Helper()
	for _, sql := range statements {
		_, err := p.pool.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
		require.NoError(p, err, sql)
	}
}

// begin opens a transaction that stays open until the test ends.
func (p *patient) begin(sql string) {
	p.Helper()
	conn, err := pgx.Connect(p.Context(), pgtest.Direct(p, p.url))
	require.NoError(p, err)
	p.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(p.Context(), "BEGIN; "+sql, pgx.QueryExecModeSimpleProtocol)
	require.NoError(p, err)
}

func (p *patient) examine() *Report {
	p.Helper()
	r, err := Examine(p.Context(), p.config)
	require.NoError(p, err)
	return r
}

// names returns the findings of a report: severity, check and subject. It omits checks that found nothing, and findings about the
// tests' server: its durability settings, and its version if it has no more corrections.
func names(r *Report) (list []string) {
	for _, f := range r.Findings {
		own := f.Check == "server-version" && f.Severity == Warning || f.Check == "durability" && strings.Contains(f.Found, " for the server: ")
		if f.Severity != OK && !own {
			list = append(list, strings.TrimSpace(fmt.Sprint(f.Severity, " ", f.Check, " ", f.About)))
		}
	}
	slices.Sort(list)
	return list
}

// wants requires exactly these findings. One that ends in "…" matches all that begin so.
func wants(t testing.TB, r *Report, want ...string) {
	t.Helper()
	slices.Sort(want)
	same := slices.EqualFunc(names(r), want, func(got, want string) bool {
		begin, open := strings.CutSuffix(want, "…")
		return got == want || open && strings.HasPrefix(got, begin)
	})
	assert.True(t, same, "want %q\ngot %+v", want, r.Findings)
}

const aMoment = time.Nanosecond
