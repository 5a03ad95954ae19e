package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestMain(m *testing.M) {
	if isNode() {
		if err := runNode(); err != nil {
			fmt.Fprintln(os.Stderr, "node:", err)
			os.Exit(1)
		}
		return
	}
	tables.Main(m)
}

// patience bounds short operations.
const patience = 60 * time.Second

// database returns a pool on a new database with Pawl's tables.
func database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return pgtest.Pool(t)
}

// poolOf returns another pool on the same database.
func poolOf(t testing.TB, pool *pgxpool.Pool, size int32) *pgxpool.Pool {
	t.Helper()
	config := pool.Config().Copy()
	config.MaxConns = size
	other, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(other.Close)
	return other
}

// start starts an engine with the workflow counter until the end of the test. change edits its configuration.
func start(t testing.TB, pool *pgxpool.Pool, change ...func(*engine.Config)) *engine.Engine {
	t.Helper()
	config := engine.Config{Pool: pool, Workflows: []workflow.Source{counter},
		Log: slog.New(slog.NewTextHandler(&firstLines{out: t.Output(), left: 20}, nil))}
	for _, c := range change {
		c(&config)
	}
	e, err := engine.New(config)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context()))
	t.Cleanup(func() { stop(t, e) })
	return e
}

// firstLines forwards the first writes and drops the rest.
type firstLines struct {
	out  io.Writer
	mu   sync.Mutex
	left int
}

func (w *firstLines) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == 0 {
		return len(p), nil
	}
	w.left--
	return w.out.Write(p)
}

// stop stops an engine within patience.
func stop(t testing.TB, e *engine.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e.Stop(ctx)
	assert.NoError(t, ctx.Err(), "the engine did not stop in time")
}

// bounded returns a context for short operations.
func bounded(t testing.TB) context.Context { return boundedBy(t, patience) }

// underLoad returns a context for work that is slow on a busy machine.
func underLoad(t testing.TB) context.Context { return boundedBy(t, 4*patience) }

func boundedBy(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// must submits a command that has to succeed.
func must(t testing.TB, e *engine.Engine, c transitions.Command) transitions.Receipt {
	t.Helper()
	r, err := e.Submit(bounded(t), c)
	require.NoErrorf(t, errors.Join(err, r.Err()), "%s %s", c.Transition, c.Key)
	return r
}

// wantCode fails the test unless the error has the code.
func wantCode(t testing.TB, what string, err error, want workflow.Code) {
	t.Helper()
	assert.Equalf(t, want, workflow.CodeOf(err), "%s (%v)", what, err)
}

// answered is the result of a call in the background.
type answered struct {
	receipt transitions.Receipt
	err     error
}

// submit submits in the background.
func submit(ctx context.Context, e *engine.Engine, c transitions.Command) <-chan answered {
	out := make(chan answered, 1)
	go func() {
		r, err := e.Submit(ctx, c)
		out <- answered{r, err}
	}()
	return out
}

// wantDone fails the test unless all commands succeeded.
func wantDone(t testing.TB, waiting []<-chan answered) {
	t.Helper()
	for i, w := range waiting {
		a := <-w
		assert.NoErrorf(t, errors.Join(a.err, a.receipt.Err()), "command %d", i)
	}
}

// number executes a query for a number.
func number(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) int64 {
	t.Helper()
	var n int64
	require.NoError(t, pool.QueryRow(bounded(t), sql, args...).Scan(&n), sql)
	return n
}

// wantSound fails the test unless the default tenant's log and chains verify, every transition has its events and its command, and every
// command that caused a transition has its audit row.
func wantSound(t testing.TB, e *engine.Engine, pool *pgxpool.Pool) {
	t.Helper()
	v, err := e.Admin().Verify(underLoad(t), "", [16]byte{})
	require.NoError(t, err)
	assert.Empty(t, v.Broken, "broken")
	tables.WantSound(t, pool)
}
