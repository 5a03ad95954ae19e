package demo

import "context"

// order is the chapter about what a retry is.
func (s *story) order(ctx context.Context) error {
	const (
		place    = "/v1/workflows/order/place"
		theOrder = "/v1/workflows/order/keys/c-1:k-9"
		cart     = `{"customer":"c-1","cart":"k-9","total":129900,"currency":"EUR"}`
		parcel   = `{"carrier":"Post","tracking":"00340434"}`
	)
	s.title("An order")
	if err := s.play(ctx, []exchange{
		{
			tell: "A customer orders what is in the cart. The client names its intent with an\n" +
				"idempotency key, which it will repeat on every retry.",
			request: post(place, "checkout-7", cart), status: 201, as: "placed",
			checks: []check{first, has("state", "placed", "")},
		},
		{
			tell:    "The answer was lost on the way. The client does not know, and sends it again.",
			request: post(place, "checkout-7", cart), status: 201,
			checks: []check{replayOf("placed")},
		},
		{
			tell: "The same key with another payload is a mistake of the client, never a second\n" +
				"order and never the answer to something else.",
			request: post(place, "checkout-7", `{"customer":"c-1","cart":"k-9","total":99900,"currency":"EUR"}`), status: 422,
			checks: []check{refused("idempotency_key_reused", "refused; the stored command is untouched")},
		},
		{
			tell: "A new key, but the cart was ordered already: the workflow declares customer and\n" +
				"cart as its business key, so the answer is the order that exists.",
			request: post(place, "checkout-8", cart), status: 200,
			checks: []check{sameInstanceAs("placed"), has("existing", true, "")},
		},
		{
			tell:    "A malformed payload is refused field by field, and nothing is stored.",
			request: post(place, "checkout-9", `{"customer":"c-1","cart":"k-10","total":0,"currency":"Euro"}`), status: 400,
			checks: []check{refused("invalid_payload", "the key is free: mend the request and send it again")},
		},
		{
			tell: "Shipping before the payment is refused by the state. Such a refusal is a decision:\n" +
				"it is stored with the key like a success ...",
			request: post(theOrder+"/ship", "ship-1", parcel), status: 409, as: "too early",
			checks: []check{refused("illegal_transition", ""), has("final", true, "")},
		},
		{
			tell:    "... and every retry gets it again, whatever has become of the order meanwhile.",
			request: post(theOrder+"/ship", "ship-1", parcel), status: 409,
			checks: []check{replayOf("too early")},
		},
		{
			tell: "The customer pays. The order is addressed by the shop's own number. A payment\n" +
				"provider is asked, which takes a moment, and the client prefers to wait for it.",
			request: post(theOrder+"/pay", "pay-1", card).with("Prefer", "wait=60"), status: 200,
			checks: []check{first, has("state", "paid", ""), sameInstanceAs("placed")},
		},
	}); err != nil {
		return err
	}
	instance, err := member(s.answers["placed"].body, "instance")
	if err != nil {
		return s.failed(err)
	}
	return s.ship(ctx, instance, theOrder, parcel)
}

// ship is about who may do what, and what is known before it is done.
func (s *story) ship(ctx context.Context, instance, theOrder, parcel string) error {
	ship := post(theOrder+"/ship", "ship-2", parcel)
	return s.play(ctx, []exchange{
		{
			tell:    "Who may ship? The sales desk may not, and that is not stored either.",
			request: ship.with("Pawl-Actor", "sam").with("Pawl-Roles", "sales"), status: 403,
			checks: []check{refused("role_required", "the key is still free")},
		},
		{
			tell:    "What can Sam do now, and why not the rest?",
			request: get("/v1/instances/"+instance+"/transitions").with("Pawl-Actor", "sam").with("Pawl-Roles", "sales"), status: 200,
			checks: []check{has("instance", instance, "")},
		},
		{
			tell: "What would happen if Wanda of the warehouse shipped it? A dry run decides like the\n" +
				"real thing, and writes nothing.",
			request: post(theOrder+"/ship?dry_run=true", "ship-2", parcel).with("Pawl-Actor", "wanda").with("Pawl-Roles", "warehouse"), status: 200,
			checks: []check{header("Pawl-Dry-Run", "true", ""), has("state", "shipped", "")},
		},
		{
			tell:    "The order is as it was.",
			request: get(theOrder), status: 200,
			checks: []check{has("state", "paid", ""), header("ETag", `"3"`, "still at version 3: the payment made two, when it began and when it ended")},
		},
		{
			tell:    "Wanda ships it, provided that it is still at the version that she has seen.",
			request: ship.with("Pawl-Actor", "wanda").with("Pawl-Roles", "warehouse").with("If-Match", `"3"`), status: 200,
			checks: []check{first, has("state", "shipped", "")},
		},
		{
			tell: "Somebody who has still version 3 on the screen wants to refund it, and learns that it\n" +
				"has moved on.",
			request: post(theOrder+"/refund", "refund-1", `{"reason":"changed my mind"}`).with("If-Match", `"3"`), status: 412,
			checks: []check{refused("version_conflict", "")},
		},
		{
			tell:    "Everything that happened to the order, each entry chained by hash to the one before.",
			request: get("/v1/instances/" + instance + "/history"), status: 200,
		},
	})
}
