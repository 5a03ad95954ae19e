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
		if _, err := p.pool.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			p.Fatalf("%v: %s", err, sql)
		}
	}
}

// begin opens a transaction that stays open until the test is over.
func (p *patient) begin(sql string) {
	p.Helper()
	conn, err := pgx.Connect(p.Context(), pgtest.Direct(p, p.url))
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(p.Context(), "BEGIN; "+sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		p.Fatal(err)
	}
}

func (p *patient) examine() *Report {
	p.Helper()
	r, err := Examine(p.Context(), p.config)
	if err != nil {
		p.Fatal(err)
	}
	return r
}

// names are the findings of a report: severity, check, and what it is about. Left out is what is well, and what is true of
// the tests' server: that it forgets what was committed, and, on some days, that its version gets no corrections any more.
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

// wants reports whether the findings are these and no others. One that ends in "…" stands for all that begin so.
func wants(got, want []string) bool {
	want = slices.Sorted(slices.Values(want))
	return slices.EqualFunc(got, want, func(g, w string) bool {
		if begin, found := strings.CutSuffix(w, "…"); found {
			return strings.HasPrefix(g, begin)
		}
		return g == w
	})
}

func describe(r *Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		if f.Severity != OK {
			fmt.Fprintf(&b, "\n%s %s %s: %s → %s", f.Severity, f.Check, f.About, f.Found, f.Do)
		}
	}
	return b.String()
}

const aMoment = time.Nanosecond
