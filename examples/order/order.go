// Package order is an example: an order in a shop, from the cart to the parcel,
// declared as a workflow. Copy it and make it yours: the states, the data, the
// payloads and the actions are all there is.
package order

import "github.com/pawlhq/pawl/workflow"

// The states of an order. Refunded and Cancelled are final; a shipped order
// stays open, because it may come back.
const (
	Placed    workflow.State = "placed"
	Paid      workflow.State = "paid"
	Shipped   workflow.State = "shipped"
	Refunded  workflow.State = "refunded"
	Cancelled workflow.State = "cancelled"
)

// Warehouse is the role that may ship.
const Warehouse = "warehouse"

// Workflow declares the order. One cart becomes one order: placing it again,
// even with another idempotency key, answers with the order that exists.
var Workflow = workflow.Define("order", 1,
	workflow.Start("place", Placed, place).BusinessKey(Key).
		Doc("The customer orders what is in the cart."),
	workflow.On("pay", workflow.From(Placed), Paid, pay).
		Doc("The money has arrived."),
	workflow.On("ship", workflow.From(Paid), Shipped, ship).Role(Warehouse).
		Doc("The parcel was handed to a carrier."),
	workflow.On("refund", workflow.From(Paid, Shipped), Refunded, refund).
		Doc("The money goes back to the customer."),
	workflow.On("cancel", workflow.From(Placed), Cancelled, cancel).
		Doc("The order is given up before it is paid."),
).
	Final(Refunded, Cancelled).
	Roles(Warehouse).
	Attr("customer", func(o Order) string { return o.Customer })

// Order is what is known of an order: the data of an instance.
type Order struct {
	Customer string `json:"customer"`
	Cart     string `json:"cart"`
	Total    int64  `json:"total"`    // in minor units of the currency: 129900 is 1,299.00 EUR
	Currency string `json:"currency"` // ISO 4217
	Method   string `json:"method,omitempty"`
	Carrier  string `json:"carrier,omitempty"`
	Tracking string `json:"tracking,omitempty"`
}

// Place is the payload of "place". The customer has no colon, so that the
// business key has one reading; see Key.
type Place struct {
	Customer string `json:"customer" validate:"required,max=100,excludes=:"`
	Cart     string `json:"cart" validate:"required,max=100"`
	Total    int64  `json:"total" validate:"gt=0"`
	Currency string `json:"currency" validate:"required,iso4217"`
}

// Pay is the payload of "pay".
type Pay struct {
	Method string `json:"method" validate:"required,oneof=card transfer invoice"`
}

// Ship is the payload of "ship".
type Ship struct {
	Carrier  string `json:"carrier" validate:"required,max=100"`
	Tracking string `json:"tracking" validate:"required,max=100"`
}

// Refund is the payload of "refund".
type Refund struct {
	Reason string `json:"reason" validate:"required,max=500"`
}

// Cancel is the payload of "cancel".
type Cancel struct {
	Reason string `json:"reason" validate:"required,max=500"`
}

// Key is the business key of an order: "customer:cart". Whoever knows both can
// address the order without its id.
func Key(p Place) string { return p.Customer + ":" + p.Cart }

func place(_ *workflow.Call, o *Order, p Place) error {
	o.Customer, o.Cart, o.Total, o.Currency = p.Customer, p.Cart, p.Total, p.Currency
	return nil
}

func pay(_ *workflow.Call, o *Order, p Pay) error {
	o.Method = p.Method
	return nil
}

func ship(_ *workflow.Call, o *Order, p Ship) error {
	o.Carrier, o.Tracking = p.Carrier, p.Tracking
	return nil
}

// refund and cancel change the state alone; why stands in the history.
func refund(c *workflow.Call, _ *Order, p Refund) error {
	c.Because(p.Reason)
	return nil
}

func cancel(c *workflow.Call, _ *Order, p Cancel) error {
	c.Because(p.Reason)
	return nil
}
