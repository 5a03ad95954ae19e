package engine_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Transactions of callers and the pipeline's own groups, some rolled back, on a
// few instances: the log has no gap and no chain is broken.
func TestSubmitTx_SharesLog(t *testing.T) {
	t.Parallel()
	config := database(t).Config()
	config.MaxConns = 12
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	e := newEngine(t, pool)
	numbers := []string{"L-0", "L-1", "L-2", "L-3", "L-4", "L-5", "L-6", "L-7"}
	for _, number := range numbers {
		submit(t, e, applied(number, 100_000))
	}
	done := int64(len(numbers))
	var committed atomic.Int64
	errUndo := errors.New("undo")
	var work sync.WaitGroup
	for w := range 8 {
		random := rand.New(rand.NewPCG(7, uint64(w)))
		work.Go(func() {
			for range 25 {
				number, key := numbers[random.IntN(len(numbers))], uuid.NewString()
				if w%2 == 0 {
					if r, err := e.Submit(t.Context(), on("pay", number, key, 1, "")); err != nil || r.Refused() {
						t.Errorf("Submit: %+v, %v", r, err)
						continue
					}
					committed.Add(1)
					continue
				}
				err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
					for _, part := range []string{"-1", "-2"} {
						if _, err := e.SubmitTx(t.Context(), tx, on("pay", number, key+part, 1, "")); err != nil {
							return err
						}
					}
					if random.IntN(3) == 0 {
						return errUndo
					}
					return nil
				})
				switch {
				case err == nil:
					committed.Add(2)
				case !errors.Is(err, errUndo):
					t.Errorf("SubmitTx: %v", err)
				}
			}
		})
	}
	f := e.Read().Follow("", 0)
	defer f.Close()
	stop := make(chan struct{})
	var seen int64
	reading := make(chan error, 1)
	go func() {
		for last := false; ; {
			select {
			case <-stop:
				last = true // one more look sees the rest
			default:
			}
			batch, err := f.Poll(t.Context())
			if err != nil || last && len(batch.Events) == 0 {
				reading <- err
				return
			}
			for _, ev := range batch.Events {
				assert.Falsef(t, ev.Position != seen+1 && (ev.Position != seen || ev.Ordinal == 0),
					"position %d comes after %d", ev.Position, seen)
				seen = ev.Position
			}
		}
	}()
	work.Wait()
	close(stop)
	require.NoError(t, <-reading)
	want := done + committed.Load()
	head, err := e.Read().Head(t.Context(), "")
	assert.Truef(t, err == nil && head == want && seen == want,
		"the head is %d, %v, and %d were read; %d were committed", head, err, seen, want)
	v, err := e.Admin().Verify(t.Context(), "", uuid.Nil)
	assert.Truef(t, err == nil && len(v.Broken) == 0 && v.Entries == want, "got %+v, %v", v, err)
}
