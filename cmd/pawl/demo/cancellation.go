package demo

import (
	"context"

	"github.com/pawlhq/pawl/examples/order/provider"
)

// cancellation is the chapter about an effect that nobody wants any more.
func (s *story) cancellation(ctx context.Context) error {
	s.title("A change of mind")
	const theOrder = "/v1/workflows/order/keys/c-1:k-11"
	charge, refund := newHold(), newHold()
	defer charge.release()
	defer refund.release()
	s.bank.Misbehave(func(r provider.Request) provider.Behaviour {
		switch r.Op {
		case provider.OpCharge:
			charge.wait()
		case provider.OpRefund:
			refund.wait()
		}
		return provider.Behaviour{}
	})
	defer s.bank.Misbehave(nil)
	pay := post(theOrder+"/pay", "pay-1", card)
	if err := s.play(ctx, []exchange{
		another("k-11"),
		{
			tell:    "The payment is on its way to the provider ...",
			request: pay, status: 202,
			checks: []check{first, has("status", "processing", "")},
		},
	}); err != nil {
		return err
	}
	if err := charge.await(ctx); err != nil {
		return s.failed(err)
	}
	if err := s.play(ctx, []exchange{
		{
			tell:    "... when the customer thinks better of it. The order does not wait for the provider.",
			request: post(theOrder+"/cancel", "cancel-1", `{"reason":"found it cheaper"}`), status: 200,
			checks: []check{first, has("state", "cancelled", "")},
		},
		{
			tell:    "What became of the payment?",
			request: pay.with("Prefer", "wait=60"), status: 409,
			checks: []check{refused("command_cancelled", "it was told to stop")},
		},
	}); err != nil {
		return err
	}
	charge.release()
	if err := s.charged(ctx, "c-1:k-11"); err != nil {
		return s.failed(err)
	}
	if err := s.play(ctx, []exchange{{
		tell:    "But the provider knew nothing of that, and has charged.",
		request: s.ledger(), status: 200,
		checks: []check{books("c-1:k-11", 1, 0, "")},
	}}); err != nil {
		return err
	}
	refund.release()
	return s.play(ctx, []exchange{
		{
			tell: "Nobody here could know. So the undo that the workflow declares was planned with the end\n" +
				"of the payment: a command of its own, with retries of its own. It leaves an event.",
			request: get("/v1/events?type=order.pay.undone").with("Prefer", "wait=60"), status: 200,
			checks: []check{events(1, "undone, though the order is closed")},
		},
		{
			tell:    "The money is back.",
			request: s.ledger(), status: 200,
			checks: []check{books("c-1:k-11", 1, 1, "c-1:k-11 was charged once and refunded once")},
		},
	})
}

// events asks a page of the log for so many events.
func events(n int, says string) check {
	return check{says, func(_ *story, a answer) error {
		ids, err := eventIDs(a.body)
		if err == nil && len(ids) != n {
			err = wantMember(a, "events", n)
		}
		return err
	}}
}
