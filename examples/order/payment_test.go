package order_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/workflow"
)

// flaky is a provider that things happen to. A nil function does nothing.
type flaky struct {
	*provider.Provider
	before, after func() error // a charge; their errors are those of the charge
	asked         func() error // whether a charge has happened
	refund        func() error // after a refund
	keys          []string     // of the charges that were asked for
}

func (f *flaky) Charge(ctx context.Context, key string, c provider.Charge) (provider.Receipt, error) {
	f.keys = append(f.keys, key)
	if f.before != nil {
		if err := f.before(); err != nil {
			return provider.Receipt{}, err
		}
	}
	r, err := f.Provider.Charge(ctx, key, c)
	if f.after != nil {
		err = errors.Join(err, f.after())
	}
	return r, err
}

func (f *flaky) Charged(ctx context.Context, key string) (*provider.Receipt, error) {
	if f.asked != nil {
		if err := f.asked(); err != nil {
			return nil, err
		}
	}
	return f.Provider.Charged(ctx, key)
}

func (f *flaky) Refund(ctx context.Context, key string) error {
	err := f.Provider.Refund(ctx, key)
	if f.refund != nil {
		err = errors.Join(err, f.refund())
	}
	return err
}

var errNoAnswer = errors.New("no answer")

// failing fails so many times.
func failing(times int) func() error {
	return func() error {
		if times--; times >= 0 {
			return errNoAnswer
		}
		return nil
	}
}

// wantMoney compares what the provider has done for the n-th key that it was
// charged with.
func (f *flaky) wantMoney(t *testing.T, n int, want provider.Entry) {
	t.Helper()
	distinct := slices.Compact(slices.Clone(f.keys))
	require.Truef(t, n < len(distinct), "it was charged with the keys %v", distinct)
	got := f.Ledger()[distinct[n]]
	got.Reference, got.Amount = "", 0
	assert.Equalf(t, want, got, "charge %d the provider has", n)
}

func TestPaymentIsRepeatedWithItsKey(t *testing.T) {
	f := &flaky{Provider: provider.New(), before: failing(4)}
	sim, o := place(t, f)
	done(t, sim, o, "pay", order.Pay{Method: "card"})
	wantState(t, o, order.Paid)
	assert.Truef(t, len(f.keys) == 5 && len(slices.Compact(slices.Clone(f.keys))) == 1,
		"the provider was asked with the keys %v, want one key five times", f.keys)
	f.wantMoney(t, 0, provider.Entry{Requests: 1, Charges: 1})
}

// The answer of the provider is lost, or the worker is that heard it. The next
// attempt asks before it charges.
func TestChargeThatNobodyHeardOfIsFound(t *testing.T) {
	for name, lose := range map[string]func(*flaky, *pawltest.Sim){
		"the answer is lost": func(f *flaky, _ *pawltest.Sim) { f.after = failing(1) },
		"the worker is lost": func(_ *flaky, sim *pawltest.Sim) { sim.LoseWorker() },
	} {
		t.Run(name, func(t *testing.T) {
			f := &flaky{Provider: provider.New()}
			sim, o := place(t, f)
			lose(f, sim)
			done(t, sim, o, "pay", order.Pay{Method: "card"})
			wantState(t, o, order.Paid)
			f.wantMoney(t, 0, provider.Entry{Requests: 1, Charges: 1})
		})
	}
}

// The customer cancels the order while the provider is called. A charge is refunded.
func TestCancelWhilePayingGivesTheMoneyBack(t *testing.T) {
	f := &flaky{Provider: provider.New()}
	sim, o := place(t, f)
	f.after = func() error {
		o.Do("cancel", order.Cancel{Reason: "changed my mind"})
		return nil
	}
	r := sim.Await(o.Do("pay", order.Pay{Method: "card"}))
	assert.Equalf(t, workflow.CommandCancelled, workflow.CodeOf(r.Err()), "the payment is answered %v", r.Err())
	sim.Settle()
	wantState(t, o, order.Cancelled)
	f.wantMoney(t, 0, provider.Entry{Requests: 1, Charges: 1, Refunds: 1})
	want := []string{"place", "pay.accepted", "cancel", "pay.undone"}
	assert.Truef(t, slices.Equal(o.Steps(), want), "the history is %v, want %v", o.Steps(), want)
}

// The outcome of a payment is unknown. It is undone, even if it happens later, and the customer can pay in another way.
func TestPaymentThatEndedUnknownIsVoided(t *testing.T) {
	for name, tt := range map[string]struct {
		f       *flaky
		want    provider.Entry
		problem string
	}{
		"it never came": {&flaky{before: failing(10)}, provider.Entry{Voided: true},
			"the check found no effect, and no attempts are left"},
		"it was done": {&flaky{after: failing(1), asked: failing(19)}, provider.Entry{Requests: 1, Charges: 1, Refunds: 1},
			errNoAnswer.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			tt.f.Provider = provider.New()
			sim, o := place(t, tt.f)
			err := sim.Await(o.Do("pay", order.Pay{Method: "card"})).Err()
			assert.Equalf(t, workflow.ActivityFailed, workflow.CodeOf(err), "the payment is answered %v", err)
			sim.Settle()
			wantState(t, o, order.PaymentFailed)
			tt.f.wantMoney(t, 0, tt.want)
			got := pawltest.Data[order.Order](o).Problem
			assert.Truef(t, strings.HasSuffix(got, tt.problem), "the customer reads %q", got)

			done(t, sim, o, "pay", order.Pay{Method: "transfer"})
			wantState(t, o, order.Paid)
			tt.f.wantMoney(t, 0, tt.want)
			tt.f.wantMoney(t, 1, provider.Entry{Requests: 1, Charges: 1})
			assert.Equal(t, "", pawltest.Data[order.Order](o).Problem, "when it is paid, the customer reads")
		})
	}
}

// An order waits a day to be paid, and another one after a payment that failed.
// It does not expire while the provider is asked.
func TestOrderThatIsNotPaidExpires(t *testing.T) {
	sim, o := place(t, provider.New())
	sim.Skip(order.PayWithin - time.Second)
	wantState(t, o, order.Placed)

	r := o.Do("pay", order.Pay{Method: "invoice"})
	assert.Truef(t, len(o.Timers()) == 0, "while the provider is asked, the order has the timers %+v", o.Timers())
	sim.Await(r)
	sim.Skip(order.PayWithin - time.Second)
	wantState(t, o, order.PaymentFailed)
	sim.Skip(time.Second)
	wantState(t, o, order.Cancelled)

	sim, o = place(t, provider.New())
	done(t, sim, o, "pay", order.Pay{Method: "card"})
	sim.Skip(10 * order.PayWithin)
	wantState(t, o, order.Paid)
}

// The money is refunded once, even if a refund is repeated after an apparent failure.
func TestRefundThatFailedCanBeRepeated(t *testing.T) {
	f := &flaky{Provider: provider.New(), refund: failing(10)}
	sim, o := place(t, f)
	done(t, sim, o, "pay", order.Pay{Method: "card"})
	err := sim.Await(o.Do("refund", order.Refund{Reason: "arrived broken"})).Err()
	assert.Equalf(t, workflow.ActivityFailed, workflow.CodeOf(err), "the refund is answered %v", err)
	wantState(t, o, order.RefundFailed)
	done(t, sim, o, "refund", order.Refund{Reason: "once more"})
	wantState(t, o, order.Refunded)
	f.wantMoney(t, 0, provider.Entry{Requests: 1, Charges: 1, Refunds: 1})
}
