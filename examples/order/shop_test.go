package order_test

import (
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestMain(m *testing.M) { pawltest.Main(m) }

// Orders on PostgreSQL are paid over HTTP at a provider that fails half of the requests, and customers cancel some of them meanwhile. At
// the end each paid order was charged once, and no other was charged.
func TestEveryOrderIsPaidOnceOrNotAtAll(t *testing.T) {
	t.Parallel()
	p := provider.New()
	server := httptest.NewServer(p)
	defer server.Close()
	p.Misbehave(provider.Chances{Seed: 2, Fail: 0.2, Lose: 0.3}.Behave)
	e := pawltest.Engine(t, order.Workflow(&provider.Client{URL: server.URL, HTTP: server.Client()}))

	const orders = 60
	var customers sync.WaitGroup
	for n := range orders {
		customers.Go(func() {
			assert.NoErrorf(t, shop(t, e, n), "order %d", n)
		})
	}
	customers.Wait()

	paid := 0
	for n := range orders {
		inst, err := e.Read().InstanceByKey(t.Context(), "", "order", key(n))
		require.NoError(t, err)
		want := 0
		switch inst.State {
		case order.Paid:
			paid++
			want = 1
		case order.PaymentFailed, order.Cancelled:
		default:
			t.Errorf("order %d is %s", n, inst.State)
		}
		// What is taken back is taken back after the order has gone on.
		await.Eventually(
			t,
			fmt.Sprintf("order %d, which is %s, is %d times paid", n, inst.State, want),
			func() bool { return money(p, n) == want },
		)
	}
	assert.Truef(t, paid != 0 && paid != orders, "%d of %d orders are paid: this proves nothing", paid, orders)
}

func key(n int) string { return fmt.Sprintf("c-%d:k", n) }

// money is how often an order is paid for at the provider.
func money(p *provider.Provider, n int) (times int) {
	for _, entry := range p.Ledger() {
		if entry.Reference == key(n) {
			times += entry.Charges - entry.Refunds
		}
	}
	return times
}

// shop is what a customer does. One of three thinks better of it.
func shop(t *testing.T, e *engine.Engine, n int) error {
	ctx := t.Context()
	if _, err := e.Submit(ctx, transitions.Command{Workflow: "order", Transition: "place", Key: key(n),
		Payload: fmt.Appendf(nil, `{"customer":"c-%d","cart":"k","total":1000,"currency":"EUR"}`, n)}); err != nil {
		return err
	}
	pay, err := e.Submit(ctx, transitions.Command{Workflow: "order", Transition: "pay", BusinessKey: key(n), Key: "pay",
		Payload: []byte(`{"method":"card"}`)})
	if err != nil {
		return err
	}
	if n%3 == 0 {
		r, err := e.Submit(ctx, transitions.Command{Workflow: "order", Transition: "cancel", BusinessKey: key(n), Key: "cancel",
			Payload: []byte(`{"reason":"changed my mind"}`)})
		if err != nil {
			return err
		}
		if code := workflow.CodeOf(r.Err()); code != "" && code != workflow.IllegalTransition {
			return r.Err()
		}
	}
	end, err := e.Await(ctx, transitions.Ref{Scope: transitions.DefaultScope("order", "pay", pay.Instance), Key: "pay"})
	if err != nil {
		return err
	}
	if code := workflow.CodeOf(end.Err()); code != "" && code != workflow.CommandCancelled && code != workflow.ActivityFailed {
		return end.Err()
	}
	return nil
}
