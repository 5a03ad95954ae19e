package order_test

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
)

// cart is what c-1 orders in these tests.
var cart = order.Place{Customer: "c-1", Cart: "k-9", Total: 129900, Currency: "EUR"}

// customer sends commands about one order, and prints what they come to.
type customer struct {
	sim   *pawltest.Sim
	order *pawltest.Case
}

// newCustomer is one who has placed an order. It is in memory: a workflow can be
// tried, and tested, without a database and without waiting.
func newCustomer() customer {
	sim := pawltest.Run(pawltest.Example, order.Workflow(provider.New()))
	return customer{sim, sim.Start("order", "place", cart).As("ann")}
}

// try prints what becomes of a command: what takes time is accepted first, and
// done later.
func (c customer) try(transition string, payload any) {
	r, err := c.order.Try(transition, payload)
	if err == nil && r.InFlight() {
		fmt.Println(transition, "is accepted:", c.order.State())
		r = c.sim.Await(r)
		err = r.Err()
	}
	if err != nil {
		fmt.Println(transition, "is refused:", err)
		return
	}
	fmt.Println(transition, "is done:", c.order.State())
}

// An order goes from the cart to the parcel and comes back.
func Example() {
	ann := newCustomer()
	wanda := customer{ann.sim, ann.order.As("wanda", order.Warehouse)}
	ann.try("pay", order.Pay{Method: "card"})
	wanda.try("ship", order.Ship{Carrier: "Post", Tracking: "00340434"})
	ann.try("refund", order.Refund{Reason: "arrived broken"})

	// Output:
	// pay is accepted: paying
	// pay is done: paid
	// ship is done: shipped
	// refund is accepted: refunding
	// refund is done: refunded
}

// A declined payment is not retried, but the customer can pay in another way.
func Example_declined() {
	ann := newCustomer()
	ann.try("pay", order.Pay{Method: "invoice"})
	fmt.Println(ann.order.State())
	ann.try("pay", order.Pay{Method: "card"})

	// Output:
	// pay is accepted: paying
	// pay is refused: activity_failed: payment provider: declined: no invoice above 100000
	// payment_failed
	// pay is accepted: paying
	// pay is done: paid
}

// What nobody pays expires.
func Example_expired() {
	ann := newCustomer()
	for _, timer := range ann.order.Timers() {
		fmt.Println(timer.Do, "at", timer.At)
	}
	ann.sim.Skip(order.PayWithin)
	for _, entry := range ann.order.History() {
		fmt.Printf("%s %s by %s: %q\n", entry.At.Format(time.DateOnly), entry.Transition, entry.Actor, entry.Reason)
	}
	fmt.Println(ann.order.State())

	// Output:
	// expire at 2026-01-02 00:00:00 +0000 UTC
	// 2026-01-01 place by local: ""
	// 2026-01-02 expire by pawl:timer: "not paid within 24h0m0s"
	// cancelled
}

// A transition that the state or the role forbids is refused, and the order stays unchanged.
func Example_refused() {
	ann := newCustomer()
	ann.try("refund", order.Refund{Reason: "arrived broken"})
	ann.try("expire", nil)
	ann.try("pay", order.Pay{Method: "card"})
	ann.try("ship", order.Ship{Carrier: "Post", Tracking: "00340434"})
	ann.try("cancel", order.Cancel{Reason: "changed my mind"})

	// Output:
	// refund is refused: illegal_transition: "refund" is not possible in state "placed"; allowed are: pay, cancel, expire
	// expire is refused: role_required: "expire" requires role clock
	// pay is accepted: paying
	// pay is done: paid
	// ship is refused: role_required: "ship" requires role warehouse
	// cancel is refused: illegal_transition: "cancel" is not possible in state "paid"; allowed are: ship, refund
}

// A cart is ordered once: placing it again answers with the order as it is now.
func Example_placedTwice() {
	ann := newCustomer()
	ann.try("pay", order.Pay{Method: "transfer"})
	r, err := ann.sim.Submit(transitions.Command{Workflow: "order", Transition: "place", Key: "checkout-8",
		Payload: []byte(`{"customer":"c-1","cart":"k-9","total":129900,"currency":"EUR"}`)})
	fmt.Println(r.Status, string(r.Body), err)

	// Output:
	// pay is accepted: paying
	// pay is done: paid
	// 200 {"instance":"6ad8b798-06e8-877f-bd56-5b6f8fb2b34e","workflow":"order","transition":"place","state":"paid","version":3,"at":"2026-01-01T00:00:00Z","existing":true} <nil>
}

// What can be done now, and why not, is known without trying.
func Example_explained() {
	ann := newCustomer()
	for _, o := range ann.order.Explain() {
		fmt.Println(o.Transition, "allowed:", o.Allowed)
		for _, r := range o.Reasons {
			fmt.Println("  because:", r.Message)
		}
	}

	// Output:
	// pay allowed: true
	// cancel allowed: true
	// expire allowed: false
	//   because: "expire" requires role clock
	// ship allowed: false
	//   because: not possible in state "placed"
	//   because: "ship" requires role warehouse
	// refund allowed: false
	//   because: not possible in state "placed"
}
