package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/outbox"
)

// provisional writes a transition with two events as a caller's own transaction does: under a negative position, which is replaced at the
// commit.
func provisional(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	var position int64
	if err := tx.QueryRow(ctx, "SELECT nextval('pawl.provisional')").Scan(&position); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO pawl.audit (tenant, instance, version, position, workflow, transition, to_state, actor, payload, data,
			scope, key, at, hash) VALUES ($1, $2, 1, $3, 'order', 'place', 's', 'ann', '{}', '{}', 's', 'k', now(), sha256('x'))`, tenant, id,
		position)
	for ordinal := range 2 {
		if err == nil {
			_, err = tx.Exec(ctx, `INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
				VALUES ($1, $2, $3, $4, 'order', $5, 1, 'place', 's', now())`,
				tenant, position, fmt.Sprint("order.", ordinal), ordinal, id)
		}
	}
	return err
}

func TestPositionsAreGivenInTheOrderOfTheCommits(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	table := outbox.New(pool, same, "")
	ids := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	var open []pgx.Tx
	for _, id := range ids {
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = tx.Rollback(context.Background()) }() // after its end it does nothing
		require.NoError(t, provisional(t.Context(), tx, id))
		open = append(open, tx)
	}
	if err := provisional(t.Context(), open[1], uuid.New()); err != nil { // a second one, which comes after the first
		t.Fatal(err)
	}
	visible := func() (ids []uuid.UUID) {
		events, err := table.After(t.Context(), tenant, -100, 1000)
		require.NoError(t, err)
		for i, e := range events {
			want := int64(i/2 + 1)
			assert.Truef(t, e.Position == want && e.Ordinal == i%2, "event %d has position %d and ordinal %d", i, e.Position, e.Ordinal)
			if i%2 == 0 {
				ids = append(ids, e.Instance)
			}
		}
		return ids
	}
	assert.Empty(t, visible(), "before any commit can be read")
	require.NoError(t, open[2].Commit(t.Context()))
	got := visible()
	assert.Truef(t, slices.Equal(got, ids[2:]), "after the third committed: %v", got)
	require.NoError(t, open[0].Rollback(t.Context()))
	require.NoError(t, open[1].Commit(t.Context()))
	if got := visible(); len(got) != 3 || got[0] != ids[2] || got[1] != ids[1] {
		t.Errorf("at the end: %v, want the third, then the two of the second", got)
	}
	head, err := table.Head(t.Context(), tenant)
	assert.Truef(t, err == nil && head == 3, "the head is %d, %v", head, err)
}

// A reader that only goes forward must see everything that commits, whatever the transactions around it do.
func TestNoCommitEverAppearsBehindAReader(t *testing.T) {
	t.Parallel()
	const writers, each = 6, 40
	pool := migrated(t)
	table := outbox.New(pool, same, "")
	var committed sync.Map
	var work sync.WaitGroup
	for w := range writers {
		random := rand.New(rand.NewPCG(1, uint64(w)))
		work.Go(func() {
			for range each {
				err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
					id := uuid.New()
					if err := provisional(t.Context(), tx, id); err != nil {
						return err
					}
					if random.IntN(4) == 0 {
						return errRollback
					}
					committed.Store(id, true)
					return nil
				})
				assert.False(t, err != nil && err != errRollback, err)
			}
		})
	}
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	seen, last := 0, int64(0)
	for finished := false; ; {
		select {
		case <-done:
			finished = true // one more read sees the rest
		default:
		}
		events, err := table.After(t.Context(), tenant, last, 1000)
		require.NoError(t, err)
		for i, e := range events {
			require.Equalf(t, last+1+int64(i/2), e.Position, "position came after %d", last)
			_, ok := committed.Load(e.Instance)
			assert.Truef(t, ok, "%s was rolled back", e.Instance)
		}
		seen += len(events) / 2
		last += int64(len(events) / 2)
		if finished && len(events) == 0 {
			break
		}
	}
	want := 0
	committed.Range(func(any, any) bool { want++; return true })
	assert.Equal(t, want, seen, "transitions were read of")
	var wrong int
	err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pawl.audit a WHERE (SELECT count(*) FROM pawl.outbox o
		WHERE o.tenant = a.tenant AND o.position = a.position AND o.instance = a.instance) <> 2`).Scan(&wrong)
	assert.Truef(t, err == nil && wrong == 0, "%d audit rows whose events have another position, %v", wrong, err)
}

var errRollback = errors.New("roll back")
