package order_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// place runs the workflow with a provider, and places an order.
func place(t *testing.T, payments order.Payments) (*pawltest.Sim, *pawltest.Case) {
	t.Helper()
	sim := pawltest.Run(t, order.Workflow(payments))
	return sim, sim.Start("order", "place", cart)
}

// done does a command and waits for its end.
func done(t *testing.T, sim *pawltest.Sim, o *pawltest.Case, transition string, payload any) {
	t.Helper()
	require.NoError(t, sim.Await(o.Do(transition, payload)).Err(), transition)
}

func wantState(t *testing.T, o *pawltest.Case, want workflow.State) {
	t.Helper()
	assert.Equal(t, want, o.State(), "the order")
}

func TestReasonsStandInTheHistory(t *testing.T) {
	_, o := place(t, provider.New())
	o.Do("cancel", order.Cancel{Reason: "out of stock"})
	e := o.History()[1]
	assert.Truef(t, e.Transition == "cancel" && e.Reason == "out of stock", "%s leaves the reason %q", e.Transition, e.Reason)

	sim, o := place(t, provider.New())
	done(t, sim, o, "pay", order.Pay{Method: "card"})
	done(t, sim, o, "refund", order.Refund{Reason: "arrived broken"})
	if e := o.History()[3]; e.Transition != "refund.accepted" || e.Reason != "arrived broken" {
		t.Errorf("%s leaves the reason %q", e.Transition, e.Reason)
	}
}

func TestDataOfAShippedOrder(t *testing.T) {
	sim, o := place(t, provider.New())
	done(t, sim, o, "pay", order.Pay{Method: "card"})
	o.Do("ship", order.Ship{Carrier: "Post", Tracking: "00340434"})
	got := pawltest.Data[order.Order](o)
	want := order.Order{Customer: "c-1", Cart: "k-9", Total: 129900, Currency: "EUR", Method: "card",
		Charge: got.Charge, Carrier: "Post", Tracking: "00340434"}
	assert.Truef(t, got == want && got.Charge != "", "got  %+v\nwant %+v, with a charge", got, want)
}

func TestPayloadsAreRefusedByField(t *testing.T) {
	tests := []struct{ transition, payload, pointer string }{
		{"place", `{"cart":"k","total":1,"currency":"EUR"}`, "/customer"},
		{"place", `{"customer":"a:b","cart":"k","total":1,"currency":"EUR"}`, "/customer"},
		{"place", `{"customer":"c","total":1,"currency":"EUR"}`, "/cart"},
		{"place", `{"customer":"c","cart":"k","total":0,"currency":"EUR"}`, "/total"},
		{"place", `{"customer":"c","cart":"k","total":9.5,"currency":"EUR"}`, "/total"},
		{"place", `{"customer":"c","cart":"k","total":1,"currency":"EUX"}`, "/currency"},
		{"place", `{"customer":"c","cart":"k","total":1,"currency":"EUR","coupon":"x"}`, "/coupon"},
		{"pay", `{"method":"shells"}`, "/method"},
		{"ship", `{"tracking":"1"}`, "/carrier"},
		{"ship", `{"carrier":"Post"}`, "/tracking"},
		{"refund", `{}`, "/reason"},
		{"cancel", `{"reason":""}`, "/reason"},
	}
	sim := pawltest.Run(t, order.Workflow(provider.New()))
	for _, tt := range tests {
		c := transitions.Command{Key: "k", Workflow: "order", Transition: tt.transition, Payload: []byte(tt.payload)}
		if tt.transition != "place" {
			c.BusinessKey = "c-1:k-9"
		}
		_, err := sim.Submit(c)
		e, ok := errors.AsType[*workflow.Error](err)
		assert.Truef(t, ok && e.Code == workflow.InvalidPayload && len(e.Fields) == 1 && e.Fields[0].Pointer == tt.pointer,
			"%s %s: got %v, want %s refused", tt.transition, tt.payload, err, tt.pointer)
	}
}

// The key joins two of the customer's own strings; no two pairs may have one key.
func FuzzKeyHasOneReading(f *testing.F) {
	f.Add("c-1", "k-9", "c-1:k", "9")
	f.Add("a", "b:c", "a:b", "c")
	w, err := order.Workflow(nil).Build()
	require.NoError(f, err)
	place := w.Named("place")[0]
	f.Fuzz(func(t *testing.T, customer1, cart1, customer2, cart2 string) {
		one, err1 := place.Decode(payload(customer1, cart1))
		two, err2 := place.Decode(payload(customer2, cart2))
		if err1 != nil || err2 != nil {
			return
		}
		same := customer1 == customer2 && cart1 == cart2
		assert.Equalf(t, same, one.BusinessKey() == two.BusinessKey(), "%q/%q and %q/%q", customer1, cart1, customer2, cart2)
	})
}

// payload returns the payload of a placement, or nil if JSON cannot have the strings.
func payload(customer, cart string) []byte {
	raw, err := json.Marshal(order.Place{Customer: customer, Cart: cart, Total: 1, Currency: "EUR"})
	if err != nil {
		return nil
	}
	return raw
}
