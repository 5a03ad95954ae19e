package order_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/workflow"
)

func TestDefinitionHasNoMistakes(t *testing.T) {
	w, err := order.Workflow.Build()
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Allowed(order.Shipped); !slices.Equal(got, []string{"refund"}) {
		t.Errorf("a shipped order allows %v, want only refund", got)
	}
}

func TestReasonsStandInTheHistory(t *testing.T) {
	for _, path := range [][]string{{"cancel"}, {"pay", "refund"}} {
		d := newDesk()
		if _, err := d.do("place", cart); err != nil {
			t.Fatal(err)
		}
		for _, step := range path[:len(path)-1] {
			if _, err := d.do(step, `{"method":"card"}`); err != nil {
				t.Fatal(err)
			}
		}
		last := path[len(path)-1]
		decision, err := d.do(last, `{"reason":"out of stock"}`)
		if err != nil || decision.Err != nil {
			t.Fatal(last, err, decision.Err)
		}
		if decision.Entry.Reason != "out of stock" {
			t.Errorf("%s leaves the reason %q in the history", last, decision.Entry.Reason)
		}
	}
}

func TestAttributeFindsTheCustomersOrders(t *testing.T) {
	d := newDesk()
	if _, err := d.do("place", cart); err != nil {
		t.Fatal(err)
	}
	if got := d.order.Attributes["customer"]; got != "c-1" {
		t.Errorf("customer is %q, want c-1", got)
	}
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
	d := newDesk()
	for _, tt := range tests {
		_, err := d.do(tt.transition, tt.payload)
		e, ok := errors.AsType[*workflow.Error](err)
		if !ok || e.Code != workflow.InvalidPayload || len(e.Fields) != 1 || e.Fields[0].Pointer != tt.pointer {
			t.Errorf("%s %s: got %v, want %s refused", tt.transition, tt.payload, err, tt.pointer)
		}
	}
}

// The key joins two of the customer's own strings; no two pairs may meet in it.
func FuzzKeyHasOneReading(f *testing.F) {
	f.Add("c-1", "k-9", "c-1:k", "9")
	f.Add("a", "b:c", "a:b", "c")
	w, err := order.Workflow.Build()
	if err != nil {
		f.Fatal(err)
	}
	place := w.Named("place")[0]
	f.Fuzz(func(t *testing.T, customer1, cart1, customer2, cart2 string) {
		one, err1 := place.Decode(payload(customer1, cart1))
		two, err2 := place.Decode(payload(customer2, cart2))
		if err1 != nil || err2 != nil {
			return
		}
		same := customer1 == customer2 && cart1 == cart2
		if (one.BusinessKey() == two.BusinessKey()) != same {
			t.Errorf("%q/%q and %q/%q have the keys %q and %q", customer1, cart1, customer2, cart2, one.BusinessKey(), two.BusinessKey())
		}
	})
}

// payload is a cart as JSON, nil where a string cannot be in JSON unchanged.
func payload(customer, cart string) []byte {
	raw, err := json.Marshal(order.Place{Customer: customer, Cart: cart, Total: 1, Currency: "EUR"})
	if err != nil {
		return nil
	}
	return raw
}
