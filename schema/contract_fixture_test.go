package schema_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func exec(t testing.TB, q querier, sql string, args ...any) {
	t.Helper()
	require.NoError(t, errOf(q.Exec(t.Context(), sql, args...)), sql)
}

func ask[T any](t testing.TB, q querier, sql string, args ...any) T {
	t.Helper()
	rows, err := q.Query(t.Context(), sql, args...)
	require.NoError(t, err, sql)
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(t, err, sql)
	return v
}

// begin begins a transaction that is rolled back at the end of the test.
func begin(t testing.TB, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // no-op after commit
	return tx
}

func commit(t testing.TB, tx pgx.Tx) {
	t.Helper()
	require.NoError(t, tx.Commit(t.Context()))
}

// raised returns the database's error, which must have the SQLSTATE.
func raised(t testing.TB, err error, state string) *pgconn.PgError {
	t.Helper()
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || e.Code != state {
		t.Errorf("got %v, want SQLSTATE %s", err, state)
		return &pgconn.PgError{}
	}
	return e
}

// refused executes a statement that must raise the SQLSTATE.
func refused(t testing.TB, q querier, state, sql string, args ...any) *pgconn.PgError {
	t.Helper()
	_, err := q.Exec(t.Context(), sql, args...)
	e := raised(t, err, state)
	if e.Code == "" {
		t.Logf("by %s", sql)
	}
	return e
}

// claimed is the result of claim.
type claimed struct {
	Outcome string
	Attempt int
	Code    *int
	Body    *string
}

func (c claimed) String() string {
	s := fmt.Sprintf("%s %d", c.Outcome, c.Attempt)
	if c.Code != nil {
		s += fmt.Sprintf(" %d %s", *c.Code, *c.Body)
	}
	return s
}

// claim claims a key of the scope "s" for a request.
func claim(ctx context.Context, q querier, key, request string) (claimed, error) {
	sum := sha256.Sum256([]byte(request))
	return claimAs(ctx, q, "'s', $1, $2", key, sum[:])
}

// claimAs claims with arguments in SQL.
func claimAs(ctx context.Context, q querier, args string, values ...any) (claimed, error) {
	rows, err := q.Query(ctx, "SELECT outcome, coalesce(attempt, 0), code, body::text FROM pawl.claim("+args+")", values...)
	if err != nil {
		return claimed{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[claimed])
}

// wantClaim claims a key and compares the result.
func wantClaim(t testing.TB, q querier, key, request, want string) {
	t.Helper()
	got, err := claim(t.Context(), q, key, request)
	assert.Truef(t, err == nil && got.String() == want, "claimed %s: %v, %v; want %s", key, got, err, want)
}

// result is the result of a background statement.
type result[T any] struct {
	value T
	err   error
}

// background runs f on its own connection and returns when that waits for a lock.
func background[T any](t testing.TB, pool *pgxpool.Pool, f func(conn *pgxpool.Conn) (T, error)) <-chan result[T] {
	t.Helper()
	conn, err := pgtest.DirectTo(t, pool).Acquire(t.Context())
	require.NoError(t, err)
	done := make(chan result[T], 1)
	go func() {
		defer conn.Release()
		v, err := f(conn)
		done <- result[T]{v, err}
	}()
	pgtest.WaitBlockedPID(t, pool, conn.Conn().PgConn().PID())
	return done
}

// The workflow of the tests with the engine: an order that needs the engine only for "pay" and "check".

type order struct {
	Customer string `json:"customer"`
	Total    int64  `json:"total"`
	Parcel   string `json:"parcel,omitempty"`
}

type placing struct {
	Customer string `json:"customer" validate:"required"`
	Cart     string `json:"cart" validate:"required"`
	Total    int64  `json:"total"`
}

type shipping struct {
	Parcel string `json:"parcel"`
}

const (
	placed    workflow.State = "placed"
	paying    workflow.State = "paying"
	paid      workflow.State = "paid"
	unpaid    workflow.State = "unpaid"
	reviewed  workflow.State = "reviewed"
	shipped   workflow.State = "shipped"
	cancelled workflow.State = "cancelled"
)

func orders(pay func(ctx context.Context) error) *workflow.Definition[order] {
	none := func(*workflow.Call, *order, workflow.None) error { return nil }
	return workflow.Define("order", 1,
		workflow.Start("place", placed, func(_ *workflow.Call, o *order, p placing) error {
			o.Customer, o.Total = p.Customer, p.Total
			return nil
		}).BusinessKey(func(p placing) string { return p.Customer + ":" + p.Cart }),
		workflow.Start("draft", placed, none),
		workflow.Start("record", shipped, none),
		workflow.On("ship", workflow.From(placed, paid), shipped, func(_ *workflow.Call, o *order, p shipping) error {
			o.Parcel = p.Parcel
			return nil
		}),
		workflow.On("note", workflow.From(placed, paying), workflow.Stay, none),
		workflow.On("cancel", workflow.From(placed, paying, reviewed), cancelled, none),
		workflow.On("review", workflow.From(placed), reviewed, none),
		workflow.On("approve", workflow.From(placed), workflow.Stay, none).NotBy("note"),
		workflow.On("second", workflow.From(placed), workflow.Stay, none).NotByLast("giveup"),
		workflow.On("check", workflow.From(placed), workflow.Stay, none).Guard("it is checked", func(*workflow.Call, order) error { return nil }),
		workflow.Do("pay", workflow.From(placed), paying, paid,
			func(ctx context.Context, _ *workflow.Attempt, _ order, _ workflow.None) (workflow.None, error) {
				return workflow.None{}, pay(ctx)
			}, func(*workflow.Call, *order, workflow.None) error { return nil }).
			OrElse(unpaid, func(*workflow.Call, *order, workflow.Failure) error { return nil }),
		workflow.On("giveup", workflow.From(unpaid), cancelled, none),
	).After("forgotten", workflow.From(reviewed), time.Hour, "cancel").Final(shipped, cancelled)
}

// started returns an engine with an activity that waits until the test ends.
func started(t testing.TB, pool *pgxpool.Pool, change ...func(*engine.Config)) *engine.Engine {
	t.Helper()
	ended := make(chan struct{})
	pay := func(ctx context.Context) error {
		select {
		case <-ended:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	config := engine.Config{Pool: pool, Workflows: []workflow.Source{orders(pay)}, Log: slog.New(slog.DiscardHandler), PollOnly: true,
		Retention: engine.RetentionConfig{Off: true}, SinkLease: time.Hour} // the tests purge; no event arrives twice
	for _, c := range change {
		c(&config)
	}
	e, err := engine.New(config)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context()))
	t.Cleanup(func() {
		close(ended)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		e.Stop(ctx)
	})
	return e
}

// served is a database with the functions and an engine on it.
func served(t testing.TB, change ...func(*engine.Config)) (*pgxpool.Pool, *engine.Engine) {
	t.Helper()
	pool := pgtest.Pool(t)
	return pool, started(t, pool, change...)
}

// errOf is the error of a call whose value is not wanted.
func errOf[T any](_ T, err error) error { return err }

// place returns the command that places an order, and its payload.
func place(key, cart string) transitions.Command {
	return transitions.Command{Workflow: "order", Transition: "place", Key: key, Payload: []byte(payloadOf(cart))}
}

func payloadOf(cart string) string {
	return fmt.Sprintf(`{"customer":"c-1","cart":%q,"total":129900}`, cart)
}

// idOf returns the instance of a cart's order.
func idOf(cart string) uuid.UUID {
	return transitions.InstanceID(transitions.DefaultTenant, "order", "c-1:"+cart)
}

// placeInSQL claims the key of place and places the order in a transaction.
const placeInSQL = `SELECT pawl.transition('order:place', $1, c.attempt, 0, 'placed', '{"customer":"c-1","total":129900}', $2::json,
	business_key => 'c-1:' || $3)::text
	FROM pawl.claim('order:place', $1, pawl.fingerprint('order', 'place', $2::jsonb), 'order', 'place') AS c`

// verified verifies all audit chains and the log with the engine.
func verified(t testing.TB, e *engine.Engine) inspect.Verification {
	t.Helper()
	v, err := e.Admin().Verify(t.Context(), transitions.DefaultTenant, uuid.Nil)
	require.NoError(t, err)
	for _, b := range v.Broken {
		t.Errorf("broken: %+v", b)
	}
	return v
}
