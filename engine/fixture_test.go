package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The workflow of these tests: a loan. "book" writes the user's own ledger in
// its transaction.

type loan struct {
	Customer string `json:"customer"`
	Region   string `json:"region,omitempty"`
	Owed     int    `json:"owed"`
}

type application struct {
	Number   string `json:"number" validate:"required"`
	Customer string `json:"customer"`
	Region   string `json:"region"`
	Amount   int    `json:"amount" validate:"min=0"`
}

type payment struct {
	Amount int    `json:"amount" validate:"min=1"`
	Do     string `json:"do"` // what the user's SQL shall do besides
}

func apply(_ *workflow.Call, d *loan, p application) error {
	d.Customer, d.Region, d.Owed = p.Customer, p.Region, p.Amount
	return nil
}

func pay(c *workflow.Call, d *loan, p payment) error {
	if p.Amount > d.Owed {
		return workflow.Refuse("only %d is owed", d.Owed)
	}
	d.Owed -= p.Amount
	c.Return(map[string]int{"owed": d.Owed})
	if d.Owed == 0 {
		c.Goto("settled")
		c.Emit("loan.settled", d)
	}
	return nil
}

func none(*workflow.Call, *loan, workflow.None) error { return nil }

func loans(version int, more ...workflow.Part[loan]) *workflow.Definition[loan] {
	parts := []workflow.Part[loan]{
		workflow.Start("apply", "open", apply).BusinessKey(func(p application) string { return p.Number }),
		workflow.Start("walk-in", "open", apply),
		workflow.On("pay", workflow.From("open"), workflow.Stay, pay).Or("settled"),
		engine.InTx(workflow.On("book", workflow.From("open"), workflow.Stay, pay).Or("settled"), ledger),
		workflow.On("forgive", workflow.From("open"), "settled", none).Role("boss").NotBy("apply"),
	}
	return workflow.Define("loan", version, append(parts, more...)...).Final("settled").Roles("boss").
		Attr("customer", func(d loan) string { return d.Customer }).Attr("region", func(d loan) string { return d.Region })
}

const ledgerSQL = `CREATE TABLE ledger (customer text, amount int)`

// ledger is the user's own SQL of "book".
func ledger(ctx context.Context, tx pgx.Tx, d loan, p payment) error {
	if _, err := tx.Exec(ctx, "INSERT INTO ledger VALUES ($1, $2)", d.Customer, p.Amount); err != nil {
		return err
	}
	switch p.Do {
	case "refuse":
		return errLimit
	case "fail":
		return errors.New("the ledger is closed: secret")
	case "fail with a code":
		return workflow.Errorf(workflow.InstanceNotFound, "not yours to say")
	case "panic":
		panic("secret of the ledger")
	case "violate":
		_, err := tx.Exec(ctx, "INSERT INTO ledger SELECT 1/0")
		return err
	case "violate and hide it":
		_, _ = tx.Exec(ctx, "SELECT 1/0") // what a careless user does
	}
	return nil
}

// errLimit is one value that is returned again and again.
var errLimit = workflow.Refuse("the limit is reached")

// database is a migrated database with the user's ledger.
func database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t)
	exec(t, pool, ledgerSQL)
	return pool
}

// newEngine starts an engine with the loans, which waits for as long as a busy
// machine needs; change may alter its configuration.
func newEngine(t testing.TB, pool *pgxpool.Pool, change ...func(*engine.Config)) *engine.Engine {
	t.Helper()
	config := engine.Config{Pool: pool, Listen: pgtest.Direct(t, pool.Config().ConnString()),
		Workflows: []workflow.Source{loans(1)}, Log: slog.New(slog.DiscardHandler),
		Pipeline: engine.PipelineConfig{LockWait: time.Minute, Outage: time.Minute, HookTimeout: time.Minute}}
	for _, c := range change {
		c(&config)
	}
	config.Pool = tables.AsNode(t, config.Pool, config.Schema)
	e, err := engine.New(config)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // for work that nobody waits for any more
		defer cancel()
		e.Stop(ctx)
	})
	return e
}

func exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	require.NoError(t, errOf(pool.Exec(t.Context(), sql, args...)), sql)
}

func query[T any](t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (v T) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), sql, args...).Scan(&v), sql)
	return v
}

// rowCounts are the rows of every table that a command may write.
func rowCounts(t testing.TB, pool *pgxpool.Pool) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, table := range []string{"pawl.instance", "pawl.command", "pawl.audit", "pawl.outbox", "ledger"} {
		counts[table] = query[int](t, pool, "SELECT count(*) FROM "+table)
	}
	counts["head"] = query[int](t, pool, "SELECT coalesce(sum(head), 0) FROM pawl.log")
	return counts
}

// wantMore checks how many rows were added. Tables that are not named must be
// as before.
func wantMore(t testing.TB, pool *pgxpool.Pool, before, more map[string]int) {
	t.Helper()
	want := maps.Clone(before)
	for table, n := range more {
		want[table] += n
	}
	got := rowCounts(t, pool)
	assert.Truef(t, maps.Equal(got, want), "rows: got %v, want %v", got, want)
}

func wantCode(t testing.TB, err error, want workflow.Code) {
	t.Helper()
	assert.Equal(t, want, workflow.CodeOf(err), err)
}

// submit does a command that must be done.
func submit(t testing.TB, e *engine.Engine, c transitions.Command) transitions.Receipt {
	t.Helper()
	r, err := e.Submit(t.Context(), c)
	if err == nil {
		err = r.Err()
	}
	require.NoErrorf(t, err, "%s %s", c.Transition, c.Key)
	return r
}

// applied is an application by its number; the key is the number's.
func applied(number string, amount int) transitions.Command {
	return transitions.Command{Workflow: "loan", Transition: "apply", Key: "apply-" + number, Actor: "ann",
		Payload: fmt.Appendf(nil, `{"number":%q,"customer":"c-1","region":"north","amount":%d}`, number, amount)}
}

// on is a payment on a loan.
func on(transition, number, key string, amount int, do string) transitions.Command {
	return transitions.Command{Workflow: "loan", Transition: transition, BusinessKey: number, Key: key, Actor: "bob",
		Payload: fmt.Appendf(nil, `{"amount":%d,"do":%q}`, amount, do)}
}

func loanID(number string) uuid.UUID {
	return transitions.InstanceID(transitions.DefaultTenant, "loan", number)
}

func migrate(t testing.TB, pool *pgxpool.Pool, name string) {
	t.Helper()
	require.NoError(t, errOf(schema.Migrate(t.Context(), pool, name)))
}

// rollback ends a transaction that may have ended.
func rollback(t testing.TB, tx pgx.Tx) {
	t.Helper()
	err := tx.Rollback(context.Background())
	assert.False(t, err != nil && !errors.Is(err, pgx.ErrTxClosed), err)
}

// errOf is the error of a call whose value is not wanted.
func errOf[T any](_ T, err error) error { return err }

// started is an engine on a database of its own.
func started(t testing.TB, change ...func(*engine.Config)) (*pgxpool.Pool, *engine.Engine) {
	t.Helper()
	pool := database(t)
	return pool, newEngine(t, pool, change...)
}

// operate does an operation that must be done.
func operate(t testing.TB, e *engine.Engine, c transitions.Command, o transitions.Operation) transitions.Receipt {
	t.Helper()
	r, err := e.Admin().Operate(t.Context(), c, o)
	if err == nil {
		err = r.Err()
	}
	require.NoErrorf(t, err, "%s %s", o.Action, c.Key)
	return r
}

// still is a clock that several engines share, and that moves only when it is
// told to.
type still struct {
	mu  sync.Mutex
	now time.Time
}

// newStill begins now, as the database's clock does.
func newStill() *still { return &still{now: time.Now().UTC().Truncate(time.Microsecond)} }

func (c *still) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *still) skip(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *still) set(config *engine.Config) { config.Now = c.Now }

// retainSQL is what retention does with keys, at a time of the test's own.
const retainSQL = "SELECT FROM pawl.purge(batch => $1, moment => $2)"

func retain(t testing.TB, pool *pgxpool.Pool, now time.Time) {
	t.Helper()
	exec(t, pool, retainSQL, 1000, now)
}

func TestMain(m *testing.M) { tables.Main(m) }
