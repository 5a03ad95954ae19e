package order

import (
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/workflow"
)

func place(_ *workflow.Call, o *Order, p Place) error {
	o.Customer, o.Cart, o.Total, o.Currency = p.Customer, p.Cart, p.Total, p.Currency
	return nil
}

func pay(_ *workflow.Call, o *Order, p Pay) error {
	o.Method, o.Problem = p.Method, ""
	return nil
}

func paid(_ *workflow.Call, o *Order, r provider.Receipt) error {
	o.Charge = r.Key
	return nil
}

func ship(_ *workflow.Call, o *Order, p Ship) error {
	o.Carrier, o.Tracking = p.Carrier, p.Tracking
	return nil
}

func refund(c *workflow.Call, o *Order, p Refund) error {
	o.Problem = ""
	c.Because(p.Reason)
	return nil
}

func refunded(*workflow.Call, *Order, workflow.None) error { return nil }

// failed writes for the customer, who sees the data and not the history.
func failed(_ *workflow.Call, o *Order, f workflow.Failure) error {
	o.Problem = f.Message
	return nil
}

// cancel and expire change the state alone; why stands in the history.
func cancel(c *workflow.Call, _ *Order, p Cancel) error {
	c.Because(p.Reason)
	return nil
}

func expire(c *workflow.Call, _ *Order, _ workflow.None) error {
	c.Because("not paid within " + PayWithin.String())
	return nil
}
