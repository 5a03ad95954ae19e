package demo

import (
	"context"

	"github.com/pawlhq/pawl/examples/order/provider"
)

const card = `{"method":"card"}`

// another is a step in which c-1 orders one more cart.
func another(cart string) exchange {
	return exchange{
		tell: "Another order.",
		request: post("/v1/workflows/order/place", "checkout-"+cart,
			`{"customer":"c-1","cart":"`+cart+`","total":4200,"currency":"EUR"}`), status: 201, as: cart,
		checks: []check{first},
	}
}

// payment is the chapter about what takes time, and touches the world.
func (s *story) payment(ctx context.Context) error {
	s.title("Work that takes time")
	followed := newHold()
	defer followed.release()
	s.bank.Misbehave(func(r provider.Request) provider.Behaviour {
		switch {
		case r.Op != provider.OpCharge:
		case r.N == 1:
			followed.wait()
			return provider.Behaviour{Fail: true}
		case r.N == 2:
			return provider.Behaviour{Lose: true}
		}
		return provider.Behaviour{}
	})
	defer s.bank.Misbehave(nil)
	pay := post("/v1/workflows/order/keys/c-1:k-10/pay", "pay-1", card)
	if err := s.play(ctx, []exchange{
		another("k-10"),
		{
			tell: "The provider has a bad day. A payment is accepted all the same: from now on it\n" +
				"survives everything, and ends by itself. Nothing is locked while it is under way.",
			request: pay, status: 202, as: "paying",
			checks: []check{first, has("status", "processing", ""), has("attempt", 1, "a worker is on it already")},
		},
		{
			tell:    "The same again, while it is under way: nothing is begun a second time.",
			request: pay, status: 202,
			checks: []check{header("Idempotent-Replayed", "true", "the same command")},
		},
	}); err != nil {
		return err
	}
	s.narrate("How does it go? The provider fails once. Then it charges, but its answer is lost on the\n" +
		"way. Every attempt names the effect with the same key, and asks first whether it has\n" +
		"happened.")
	end, err := s.follow(ctx, s.answers["paying"].header.Get("Location"), followed.release)
	if err != nil {
		return s.failed(err)
	}
	if err := s.check(end, []check{has("status", "succeeded", ""), has("attempt", 3, ""), has("failures", 2, "it took three attempts")}); err != nil {
		return s.failed(err)
	}
	return s.play(ctx, []exchange{
		{
			tell:    "Was the customer charged twice? Ask the provider.",
			request: s.ledger(), status: 200,
			checks: []check{books("c-1:k-10", 1, 0, "c-1:k-10 was charged once")},
		},
		{
			tell:    "Who repeats the command now gets its answer.",
			request: pay, status: 200,
			checks: []check{header("Idempotent-Replayed", "true", ""), has("state", "paid", ""), sameInstanceAs("k-10")},
		},
	})
}
