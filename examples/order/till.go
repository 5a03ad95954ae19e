package order

import (
	"context"

	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/workflow"
)

// Payments is who takes the money. A *provider.Client is one, and so is a
// *provider.Provider, for tests. All three honour the key: repeated with it,
// they do nothing a second time.
type Payments interface {
	// Charge takes the money. Its error is final if provider.IsFinal says so.
	Charge(ctx context.Context, key string, c provider.Charge) (provider.Receipt, error)
	// Charged returns the receipt of a charge, or nil if it has not happened.
	Charged(ctx context.Context, key string) (*provider.Receipt, error)
	// Refund gives the money of a charge back. A charge that has not happened
	// cannot happen after it.
	Refund(ctx context.Context, key string) error
}

// till is what an order does outside of the database.
type till struct{ payments Payments }

// charge takes the money. Every attempt has the same key and asks for the same,
// so it is taken once.
func (t till) charge(ctx context.Context, a *workflow.Attempt, o Order, p Pay) (provider.Receipt, error) {
	return t.payments.Charge(ctx, a.Key, provider.Charge{
		Amount: o.Total, Currency: o.Currency, Method: p.Method, Reference: o.Customer + ":" + o.Cart,
	})
}

// charged asks whether an attempt that was lost has had its effect. One that is
// still on its way then does no harm: the next attempt has the same key.
func (t till) charged(ctx context.Context, a *workflow.Attempt, _ Order, _ Pay) (*provider.Receipt, error) {
	return t.payments.Charged(ctx, a.Key)
}

// void undoes a charge, whether or not it has happened.
func (t till) void(ctx context.Context, a *workflow.Attempt, _ Order, _ Pay, _ *provider.Receipt) error {
	return t.payments.Refund(ctx, a.Key)
}

// refund returns the payment. Its key is the charge's, so a charge is refunded once, whichever transition asks for it.
func (t till) refund(ctx context.Context, _ *workflow.Attempt, o Order, _ Refund) (workflow.None, error) {
	return workflow.None{}, t.payments.Refund(ctx, o.Charge)
}
