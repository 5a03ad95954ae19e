package budget

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

const mib = 1 << 20

func tenant(bytes int64) Share { return Share{Key: "tenant a", Whose: "the tenant", Bytes: bytes} }

func open(t *testing.T, b *Budget, shares ...Share) *Holder {
	t.Helper()
	h, err := b.Open(t.Context(), shares...)
	require.NoError(t, err)
	return h
}

func wantCode(t *testing.T, err error, code workflow.Code) {
	t.Helper()
	assert.Equal(t, code, workflow.CodeOf(err), err)
}

// An exhausted share refuses its own holders only.
func TestShares(t *testing.T) {
	b := New(4 * mib)
	of := open(t, b, tenant(2*mib))
	defer of.Done()
	also := open(t, b, tenant(2*mib))
	wantCode(t, of.TryTake(2*mib), workflow.RateLimited)
	require.NoError(t, of.TryTake(mib))
	wantCode(t, also.TryTake(mib), workflow.RateLimited)
	other := open(t, b)
	wantCode(t, other.TryTake(3*mib), workflow.Overloaded)
	assert.NoError(t, other.TryTake(2*mib))
	other.Done()
	of.Free(mib)
	assert.NoError(t, also.TryTake(mib))
	also.Done()
	s := b.Stats()
	assert.Truef(t, s.Held == Request && s.Refused == 3 && s.Size == 4*mib, "%+v", s)
}

// A share has so many holders.
func TestHolders(t *testing.T) {
	b := New(4 * mib)
	two := Share{Key: "credential", Whose: "the credential", Requests: 2}
	first := open(t, b, two)
	defer open(t, b, two).Done()
	_, err := b.Open(t.Context(), two)
	wantCode(t, err, workflow.RateLimited)
	first.Done()
	open(t, b, two).Done()
}

// A waiter gets what another holder frees. One that needs more than the total does not block others, and one that leaves gets nothing.
func TestWaiting(t *testing.T) {
	b := New(4 * mib)
	of := open(t, b)
	require.NoError(t, of.TryTake(3*mib))
	large, small := open(t, b), open(t, b)
	got := make(chan error, 2)
	ctx, giveUp := context.WithCancel(t.Context())
	go func() { got <- large.Await(ctx, 4*mib) }()
	waiting := func(n int) func() bool {
		return func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.waiting) == n
		}
	}
	await.Eventually(t, "one waits", waiting(1))
	go func() { got <- small.Await(t.Context(), mib) }()
	await.Eventually(t, "both wait", waiting(2))
	of.Free(mib)
	assert.NoError(t, await.Receive(t, "the small one", got))
	giveUp()
	assert.ErrorIs(t, await.Receive(t, "the large one", got), context.Canceled)
	of.Done()
	large.Done()
	small.Done()
	assert.Equal(t, int64(0), b.Stats().Held, "bytes are held by nobody")
}

// A request waits for a moment, and is then refused.
func TestPatience(t *testing.T) {
	b := New(mib)
	h := open(t, b, tenant(mib/2))
	defer h.Done()
	wantCode(t, h.Take(t.Context(), mib/2), workflow.RateLimited)
	b.limited = maxWaiting
	wantCode(t, h.Take(t.Context(), mib/2), workflow.RateLimited) // at once
	assert.Equal(t, int64(2), b.Stats().Refused, "refused")
}

// However many take, free and leave at once, nothing stays held, and never more than there is.
func TestConcurrent(t *testing.T) {
	b := New(mib)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 50 {
				h, err := b.Open(context.Background(), tenant(mib/2))
				if err != nil {
					continue
				}
				if h.TryTake(mib/4) == nil {
					s := b.Stats()
					assert.Truef(t, s.Held <= mib/2, "%d bytes are held", s.Held)
					h.Free(mib / 8)
				}
				h.Done()
			}
		})
	}
	all.Wait()
	assert.Truef(t, b.Stats().Held == 0 && len(b.shares) == 0 && len(b.waiting) == 0 && b.limited == 0,
		"%+v, %d shares, %d wait", b.Stats(), len(b.shares), len(b.waiting))
}
