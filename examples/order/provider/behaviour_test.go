package provider_test

import (
	"context"
	"net/http/httptest"
	"testing"

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

// The content of a lost answer is unknown. Each request is sent once, even on a reused connection, on which net/http would repeat a request
// with an idempotency key.
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
