package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/examples/order/provider"
)

const card = `{"method":"card"}`

// another is a step in which c-1 orders one more cart.
func (s *story) another(ctx context.Context, cart string) answer {
	return s.ask(ctx, "Another order.", post("/v1/workflows/order/place", "checkout-"+cart,
		`{"customer":"c-1","cart":"`+cart+`","total":4200,"currency":"EUR"}`), 201, first)
}

// order is the chapter about retries.
func (s *story) order(ctx context.Context) {
	const (
		place    = "/v1/workflows/order/place"
		theOrder = "/v1/workflows/order/keys/c-1:k-9"
		cart     = `{"customer":"c-1","cart":"k-9","total":129900,"currency":"EUR"}`
		parcel   = `{"carrier":"Post","tracking":"00340434"}`
	)
	s.title("An order")
	placed := s.ask(ctx, "A customer orders what is in the cart. The client names its intent with an\n"+
		"idempotency key, which it will repeat on every retry.",
		post(place, "checkout-7", cart), 201, first, has("state", "placed", ""))
	s.ask(ctx, "The answer was lost on the way. The client does not know, and sends it again.",
		post(place, "checkout-7", cart), 201, replayOf(placed))
	s.ask(ctx, "The same key with another payload is a mistake of the client, never a second\n"+
		"order and never the answer to something else.",
		post(place, "checkout-7", `{"customer":"c-1","cart":"k-9","total":99900,"currency":"EUR"}`), 422,
		has("code", "idempotency_key_reused", "refused; the stored command is untouched"))
	s.ask(ctx, "A malformed payload is refused field by field, and nothing is stored.",
		post(place, "checkout-9", `{"customer":"c-1","cart":"k-10","total":0,"currency":"Euro"}`), 400,
		has("code", "invalid_payload", "the key is free: mend the request and send it again"))
	early := s.ask(ctx, "Shipping before the payment is refused by the state. Such a refusal is a decision:\n"+
		"it is stored with the key like a success ...",
		post(theOrder+"/ship", "ship-1", parcel), 409, has("code", "illegal_transition", ""), has("final", true, ""))
	s.ask(ctx, "... and every retry gets it again, whatever has become of the order meanwhile.",
		post(theOrder+"/ship", "ship-1", parcel), 409, replayOf(early))
	s.ask(ctx, "The customer pays. The order is addressed by the shop's own number. A payment\n"+
		"provider is asked, which takes a moment, and the client prefers to wait for it.",
		post(theOrder+"/pay", "pay-1", card).with("Prefer", "wait=60"), 200, first, has("state", "paid", ""))
	ship := post(theOrder+"/ship", "ship-2", parcel)
	dry := ship.with("Pawl-Actor", "wanda", "Pawl-Roles", "warehouse")
	dry.path += "?dry_run=true"
	s.ask(ctx, "Could Wanda of the warehouse ship it? A dry run decides like the\n"+
		"real thing, and writes nothing.", dry, 200, header("Pawl-Dry-Run", "true", ""), has("state", "shipped", ""))
	s.ask(ctx, "Wanda ships it, provided that it is still at the version that she has seen: the payment\n"+
		"made two, when it began and when it ended.",
		ship.with("Pawl-Actor", "wanda", "Pawl-Roles", "warehouse", "If-Match", `"3"`), 200, first, has("state", "shipped", ""))
	s.ask(ctx, "A colleague whose screen still shows version 3 wants to refund it, and learns that it\nhas moved on.",
		post(theOrder+"/refund", "refund-1", `{"reason":"changed my mind"}`).with("If-Match", `"3"`), 412,
		has("code", "version_conflict", ""))
}

// hold keeps requests at the provider, which has taken but not yet done them.
type hold struct {
	came    atomic.Bool
	gone    chan struct{} // closed when they may go on
	release func()        // closes it
}

func newHold() *hold {
	h := &hold{gone: make(chan struct{})}
	h.release = sync.OnceFunc(func() { close(h.gone) })
	return h
}

// wait is for the provider's rule: it holds the request that it is asked about.
func (h *hold) wait() {
	h.came.Store(true)
	<-h.gone
}

// ledger asks the provider for the payments with a reference.
func (s *story) ledger(ctx context.Context, tell, reference string, charges, refunds int, says string) {
	s.ask(ctx, tell, get("/ledger").to(s.bank.URL()), 200, books(reference, charges, refunds, says))
}

// books are the expected payments.
func books(reference string, charges, refunds int, says string) check {
	return check{says, func(a answer) error {
		var ledger map[string]provider.Entry
		if err := json.Unmarshal(a.body, &ledger); err != nil {
			return fmt.Errorf("the ledger cannot be read: %w", err)
		}
		keys := 0
		for _, e := range ledger {
			if e.Reference != reference {
				continue
			}
			keys++
			if e.Charges != charges || e.Refunds != refunds {
				return fmt.Errorf("%s was charged %d times and refunded %d times, and should be %d and %d",
					reference, e.Charges, e.Refunds, charges, refunds)
			}
		}
		if keys != 1 {
			return fmt.Errorf("%s was asked to be paid with %d keys, and should be with one", reference, keys)
		}
		return nil
	}}
}

// payment is the chapter about activities.
func (s *story) payment(ctx context.Context) {
	s.title("Work that takes time")
	under := newHold()
	defer under.release()
	s.bank.Misbehave(func(r provider.Request) provider.Behaviour {
		switch {
		case r.Op != provider.OpCharge:
		case r.N == 1:
			under.wait()
			return provider.Behaviour{Fail: true}
		case r.N == 2:
			return provider.Behaviour{Lose: true}
		}
		return provider.Behaviour{}
	})
	defer s.bank.Misbehave(nil)
	pay := post("/v1/workflows/order/keys/c-1:k-10/pay", "pay-1", card)
	placed := s.another(ctx, "k-10")
	paying := s.ask(ctx, "The provider has a bad day. A payment is accepted all the same: from now on it\n"+
		"survives everything, and ends by itself. Nothing is locked while it is under way.",
		pay, 202, first, has("status", "processing", ""), has("attempt", 1, "a worker is on it already"))
	s.ask(ctx, "The same again, while it is under way: nothing is begun a second time.",
		pay, 202, header("Idempotent-Replayed", "true", "the same command"))
	under.release()
	s.ask(ctx, "A repeated request may wait for the end. The provider fails once. Then it charges, but\n"+
		"its answer is lost on the way. Every attempt names the effect with the same key, and asks\n"+
		"first whether it has happened.", pay.with("Prefer", "wait=60"), 200,
		header("Idempotent-Replayed", "true", ""), has("state", "paid", ""), has("instance", placed.at("instance"), "the same instance"))
	s.ask(ctx, "How did it go?", get(paying.header.Get("Location")), 200,
		has("status", "succeeded", ""), has("attempt", 3, ""), has("failures", 2, "it took three attempts"))
	s.ledger(ctx, "Was the customer charged twice? Ask the provider.", "c-1:k-10", 1, 0, "c-1:k-10 was charged once")
}

// cancellation is the chapter about an effect that is no longer wanted.
func (s *story) cancellation(ctx context.Context) {
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
	s.another(ctx, "k-11")
	s.ask(ctx, "The payment is on its way to the provider ...", pay, 202, first, has("status", "processing", ""))
	s.until(ctx, "the charge comes to the provider", charge.came.Load)
	s.ask(ctx, "... when the customer thinks better of it. The order does not wait for the provider.",
		post(theOrder+"/cancel", "cancel-1", `{"reason":"found it cheaper"}`), 200, first, has("state", "cancelled", ""))
	s.ask(ctx, "Where is the payment now?", pay.with("Prefer", "wait=60"), 409, has("code", "command_cancelled", "it was told to stop"))
	charge.release()
	s.until(ctx, "the provider charges", func() bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(s.bank.Ledger())), func(e provider.Entry) bool {
			return e.Reference == "c-1:k-11" && e.Charges > 0
		})
	})
	s.ledger(ctx, "But the provider knew nothing of that, and has charged.", "c-1:k-11", 1, 0, "")
	refund.release()
	s.ask(ctx, "The node could not know. So the undo that the workflow declares was planned with the end\n"+
		"of the payment: a command of its own, with retries of its own. It leaves an event.",
		get("/v1/events?type=order.pay.undone").with("Prefer", "wait=60"), 200, has("events.#", 1, "undone, though the order is closed"))
	s.ledger(ctx, "The money is back.", "c-1:k-11", 1, 1, "c-1:k-11 was charged once and refunded once")
}
