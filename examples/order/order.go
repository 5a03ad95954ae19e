// Package order is an example: an order in a shop, from the cart to the parcel,
// declared as a workflow. Copy it and make it yours: the states, the data, the
// payloads, the actions and what they do outside are all there is.
//
// Package provider is the payment provider that it charges.
package order

import (
	"time"

	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/workflow"
)

// The states of an order. Refunded and Cancelled are final; a shipped order
// stays open, because it may come back.
const (
	Placed        workflow.State = "placed"
	Paying        workflow.State = "paying" // the provider is asked
	PaymentFailed workflow.State = "payment_failed"
	Paid          workflow.State = "paid"
	Shipped       workflow.State = "shipped"
	Refunding     workflow.State = "refunding" // the provider is asked
	RefundFailed  workflow.State = "refund_failed"
	Refunded      workflow.State = "refunded"
	Cancelled     workflow.State = "cancelled"
)

// Warehouse is the role that may ship. Clock is the role of timers, which have every role; no caller holds it.
const (
	Warehouse = "warehouse"
	Clock     = "clock"
)

// PayWithin is how long an order waits to be paid, from the moment it is placed
// or from the last payment that failed.
const PayWithin = 24 * time.Hour

// Workflow declares the order. One cart becomes one order: placing it again,
// even with another idempotency key, answers with the order that exists.
func Workflow(payments Payments) *workflow.Definition[Order] {
	till := till{payments}
	unpaid := workflow.From(Placed, PaymentFailed)
	return workflow.Define("order", 1,
		workflow.Start("place", Placed, place).BusinessKey(Key).
			Doc("The customer orders what is in the cart."),
		workflow.Do("pay", unpaid, Paying, Paid, till.charge, paid).
			Accept(pay).OrElse(PaymentFailed, failed).Undo(till.void).Check(till.charged).
			Retry(patience).Timeout(5*time.Second).
			Doc("The customer pays. Whose payment fails may try another way."),
		workflow.On("cancel", workflow.From(Placed, Paying, PaymentFailed), Cancelled, cancel).
			Receive(PaymentNotices, workflow.JSON(abandoned)).
			Doc("The order is given up before it is paid. A payment under way is stopped, and given back if it happens all the same."),
		workflow.On("expire", unpaid, Cancelled, expire).Role(Clock).
			Doc("The order was not paid in time."),
		workflow.On("ship", workflow.From(Paid), Shipped, ship).Role(Warehouse).
			Doc("The parcel was handed to a carrier."),
		workflow.Do("refund", workflow.From(Paid, Shipped, RefundFailed), Refunding, Refunded, till.refund, refunded).
			Accept(refund).OrElse(RefundFailed, failed).
			Retry(patience).Timeout(5*time.Second).
			Doc("The money goes back to the customer."),
	).
		After("unpaid", unpaid, PayWithin, "expire").
		Final(Refunded, Cancelled).
		Roles(Warehouse, Clock).
		Attr("customer", func(o Order) string { return o.Customer })
}

// patience bounds the attempts to reach the provider. Its decisions are not retried.
var patience = workflow.Retry{Attempts: 10, First: 200 * time.Millisecond, Max: 10 * time.Second, Final: provider.IsFinal}
