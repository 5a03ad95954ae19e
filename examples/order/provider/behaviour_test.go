package provider_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/order/provider"
)

// first is a rule for the first request of an operation with each key.
func first(op provider.Op, b provider.Behaviour) func(provider.Request) provider.Behaviour {
	return func(r provider.Request) provider.Behaviour {
		if r.Op == op && r.N == 1 {
			return b
		}
		return provider.Behaviour{}
	}
}

func wantRetryable(t *testing.T, err error) {
	t.Helper()
	assert.Truef(t, err != nil && !provider.IsFinal(err), "got %v, want an error that is not final", err)
}

func TestFailedRequestIsNotDone(t *testing.T) {
	for _, op := range []provider.Op{provider.OpCharge, provider.OpCharged, provider.OpRefund} {
		p, c := serve(t)
		p.Misbehave(first(op, provider.Behaviour{Fail: true}))
		_, err := c.Charge(t.Context(), "k", books)
		if op == provider.OpCharge {
			wantRetryable(t, err)
			wantEntry(t, p, "k", provider.Entry{Requests: 1})
			_, err = c.Charge(t.Context(), "k", books)
		}
		require.NoError(t, err)
		if op == provider.OpCharged {
			r, err := c.Charged(t.Context(), "k")
			wantRetryable(t, err) // and never "it has not happened"
			assert.Nil(t, r, "a failed question was answered with")
		}
		if op == provider.OpRefund {
			wantRetryable(t, c.Refund(t.Context(), "k"))
			wantEntry(t, p, "k", provider.Entry{Charges: 1})
			assert.NoError(t, c.Refund(t.Context(), "k"))
			wantEntry(t, p, "k", provider.Entry{Charges: 1, Refunds: 1})
		}
	}
}

// Nobody knows what a lost answer said. Each request is sent once all the same:
// also on a connection that was used before, where net/http would send one with
// an idempotency key again by itself.
func TestLostRequestIsDone(t *testing.T) {
	p, c := serve(t)
	if _, err := c.Charge(t.Context(), "to open a connection", books); err != nil {
		t.Fatal(err)
	}
	p.Misbehave(first(provider.OpCharge, provider.Behaviour{Lose: true}))
	_, err := c.Charge(t.Context(), "k", books)
	wantRetryable(t, err)
	wantEntry(t, p, "k", provider.Entry{Reference: "c-1:k-9", Amount: 129900, Requests: 1, Charges: 1})
	r, err := c.Charged(t.Context(), "k")
	assert.Truef(t, err == nil && r != nil, "asked whether it has happened: %v, %v", r, err)
	_, err = c.Charge(t.Context(), "k", books)
	assert.NoError(t, err)
	wantEntry(t, p, "k", provider.Entry{Charges: 1})

	p.Misbehave(first(provider.OpRefund, provider.Behaviour{Lose: true}))
	wantRetryable(t, c.Refund(t.Context(), "k"))
	wantEntry(t, p, "k", provider.Entry{Charges: 1, Refunds: 1})
	assert.NoError(t, c.Refund(t.Context(), "k"))
	wantEntry(t, p, "k", provider.Entry{Charges: 1, Refunds: 1})
}

func TestHangingRequestEndsWithItsClient(t *testing.T) {
	p, c := serve(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	hang := first(provider.OpCharge, provider.Behaviour{Hang: true})
	p.Misbehave(func(r provider.Request) provider.Behaviour {
		leave() // now that it is there
		return hang(r)
	})
	_, err := c.Charge(ctx, "k", books)
	wantRetryable(t, err)
	assert.ErrorIs(t, err, context.Canceled, "want that its client has left")
	wantEntry(t, p, "k", provider.Entry{Requests: 1})
	_, err = c.Charge(t.Context(), "k", books)
	assert.NoError(t, err)
}

// A charge is stuck on its way, its client gives it up and voids the key. When
// the charge arrives after all, it is refused.
func TestChargeThatComesAfterItsRefundTakesNothing(t *testing.T) {
	p := provider.New()
	server := httptest.NewServer(p)
	defer server.Close()
	c := &provider.Client{URL: server.URL, HTTP: server.Client()}
	arrived, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	p.Misbehave(func(r provider.Request) provider.Behaviour {
		if r.Op == provider.OpCharge {
			close(arrived)
			<-release
		}
		return provider.Behaviour{}
	})
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		_, err := c.Charge(ctx, "k", books)
		wantRetryable(t, err)
	}()
	<-arrived
	leave()
	<-done
	require.NoError(t, c.Refund(t.Context(), "k"))
	close(release)
	server.Close() // waits for it
	wantEntry(t, p, "k", provider.Entry{Reference: "c-1:k-9", Amount: 129900, Requests: 1, Voided: true})
}

// However much goes wrong: who repeats until there is an answer has been charged
// once.
func TestPatienceIsChargedOnce(t *testing.T) {
	p, c := serve(t)
	p.Misbehave(provider.Chances{Seed: 1, Fail: 0.2, Lose: 0.3, Hang: 0.1}.Behave)
	var group sync.WaitGroup
	const keys = 100
	for i := range keys {
		group.Go(func() {
			key := fmt.Sprint("k", i)
			for {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				_, err := c.Charge(ctx, key, books)
				cancel()
				if err == nil {
					return
				}
				if provider.IsFinal(err) || t.Context().Err() != nil {
					t.Errorf("%s: %v", key, err)
					return
				}
			}
		})
	}
	group.Wait()
	requests := 0
	for key, e := range p.Ledger() {
		requests += e.Requests
		assert.Truef(t, e.Charges == 1 && e.Refunds == 0, "%s: %+v", key, e)
	}
	assert.Truef(t, requests >= keys*3/2, "%d requests for %d charges: too little went wrong to prove anything", requests, keys)
}

func TestChancesAreSharesAndRepeatable(t *testing.T) {
	chances := provider.Chances{Seed: 7, Fail: 0.1, Lose: 0.2, Hang: 0.3}
	other := chances
	other.Seed++
	counts := map[provider.Behaviour]int{}
	const n = 20_000
	same := 0
	for i := range n {
		r := provider.Request{Op: provider.OpCharge, Key: fmt.Sprint("k", i/4), N: i%4 + 1}
		b := chances.Behave(r)
		counts[b]++
		require.Equalf(t, chances.Behave(r), b, "%+v is treated in two ways", r)
		if b == other.Behave(r) {
			same++
		}
	}
	for b, share := range map[provider.Behaviour]float64{{Fail: true}: 0.1, {Lose: true}: 0.2, {Hang: true}: 0.3, {}: 0.4} {
		got := float64(counts[b]) / n
		assert.Truef(t, !(got < share-0.02) && !(got > share+0.02), "%+v has the share %.3f, want %.1f", b, got, share)
	}
	assert.Truef(t, same <= n*2/5, "another seed treats %d of %d requests alike", same, n)
}
