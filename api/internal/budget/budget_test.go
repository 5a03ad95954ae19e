package budget

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

const mib = 1 << 20

func tenant(bytes int64) Share { return Share{Key: "tenant a", Whose: "the tenant", Bytes: bytes} }

func open(t *testing.T, b *Budget, shares ...Share) *Holder {
	t.Helper()
	h, err := b.Open(t.Context(), shares...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func wantCode(t *testing.T, err error, code workflow.Code) {
	t.Helper()
	if workflow.CodeOf(err) != code {
		t.Errorf("%v, want %s", err, code)
	}
}

// A share that is used up refuses its holders, and nobody else.
func TestShares(t *testing.T) {
	b := New(4 * mib)
	of := open(t, b, tenant(2*mib))
	defer of.Done()
	also := open(t, b, tenant(2*mib))
	wantCode(t, of.TryTake(2*mib), workflow.RateLimited)
	if err := of.TryTake(mib); err != nil {
		t.Fatal(err)
	}
	wantCode(t, also.TryTake(mib), workflow.RateLimited)
	other := open(t, b)
	wantCode(t, other.TryTake(3*mib), workflow.Overloaded)
	if err := other.TryTake(2 * mib); err != nil {
		t.Error(err)
	}
	other.Done()
	of.Free(mib)
	if err := also.TryTake(mib); err != nil {
		t.Error(err)
	}
	also.Done()
	if s := b.Stats(); s.Held != Request || s.Refused != 3 || s.Size != 4*mib {
		t.Errorf("%+v", s)
	}
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

// Who waits gets what another one frees. One that needs more than there is keeps nobody waiting, and who gives up gets nothing.
func TestWaiting(t *testing.T) {
	b := New(4 * mib)
	of := open(t, b)
	if err := of.TryTake(3 * mib); err != nil {
		t.Fatal(err)
	}
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
	if err := await.Receive(t, "the small one", got); err != nil {
		t.Error(err)
	}
	giveUp()
	if err := await.Receive(t, "the large one", got); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	of.Done()
	large.Done()
	small.Done()
	if held := b.Stats().Held; held != 0 {
		t.Errorf("%d bytes are held by nobody", held)
	}
}

// A request waits for a moment, and is then refused.
func TestPatience(t *testing.T) {
	b := New(mib)
	h := open(t, b, tenant(mib/2))
	defer h.Done()
	wantCode(t, h.Take(t.Context(), mib/2), workflow.RateLimited)
	b.limited = maxWaiting
	wantCode(t, h.Take(t.Context(), mib/2), workflow.RateLimited) // at once
	if n := b.Stats().Refused; n != 2 {
		t.Errorf("%d were refused", n)
	}
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
					if s := b.Stats(); s.Held > mib/2 {
						t.Errorf("%d bytes are held", s.Held)
					}
					h.Free(mib / 8)
				}
				h.Done()
			}
		})
	}
	all.Wait()
	if b.Stats().Held != 0 || len(b.shares) != 0 || len(b.waiting) != 0 || b.limited != 0 {
		t.Errorf("%+v, %d shares, %d wait", b.Stats(), len(b.shares), len(b.waiting))
	}
}
