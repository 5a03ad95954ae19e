package workflow_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/workflow"
)

// must returns v. The examples have no errors.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

const (
	Placed    workflow.State = "placed"
	Paid      workflow.State = "paid"
	Shipped   workflow.State = "shipped"
	Cancelled workflow.State = "cancelled"
)

type Order struct {
	Customer string    `json:"customer"`
	Cart     string    `json:"cart"`
	Total    int64     `json:"total"`
	Paid     int64     `json:"paid"`
	PlacedAt time.Time `json:"placed_at"`
}

type Place struct {
	Customer string `json:"customer" validate:"required,max=32"`
	Cart     string `json:"cart" validate:"required"`
	Total    int64  `json:"total" validate:"gt=0" jsonschema:"in cents"`
	Note     string `json:"note" validate:"max=80"`
}

type Payment struct {
	Amount int64  `json:"amount" validate:"gt=0"`
	Method string `json:"method" validate:"oneof=card invoice"`
}

func place(c *workflow.Call, o *Order, p Place) error {
	*o = Order{Customer: p.Customer, Cart: p.Cart, Total: p.Total, PlacedAt: c.Now()}
	return nil
}

func pay(c *workflow.Call, o *Order, p Payment) error {
	if o.Paid+p.Amount > o.Total {
		return workflow.Refuse("%d is more than the %d that is due", p.Amount, o.Total-o.Paid)
	}
	o.Paid += p.Amount
	if o.Paid < o.Total {
		c.Goto(Placed)
	}
	c.Emit("order.payment", p)
	return nil
}

func ship(*workflow.Call, *Order, workflow.None) error   { return nil }
func cancel(*workflow.Call, *Order, workflow.None) error { return nil }

func unpaid(_ *workflow.Call, o Order) error {
	if o.Paid > 0 {
		return workflow.Refuse("%d is paid already; ask for a refund", o.Paid)
	}
	return nil
}

func cartOf(p Place) string { return p.Customer + ":" + p.Cart }

var orders = workflow.Define("order", 1,
	workflow.Start("place", Placed, place).BusinessKey(cartOf),
	workflow.On("pay", workflow.From(Placed), Paid, pay).Or(Placed),
	workflow.On("ship", workflow.From(Paid), Shipped, ship).Role("warehouse"),
	workflow.On("cancel", workflow.From(Placed, Paid), Cancelled, cancel).Guard("nothing is paid", unpaid).NotBy("ship"),
).Final(Shipped, Cancelled).
	Roles("warehouse").
	Attr("customer", func(o Order) string { return o.Customer })

// An order, declared, and what an engine reads from it.
func ExampleDefine() {
	w := must(orders.Build())
	fmt.Println(w.Name, w.Version, w.States, "ends", w.Finals)
	for _, s := range w.Steps {
		fmt.Println(s.Name, s.From, "->", s.To, s.Roles)
	}
	fmt.Println("when paid:", w.Allowed(Paid))
	// Output:
	// order 1 [placed paid shipped cancelled] ends [shipped cancelled]
	// place [] -> [placed] []
	// pay [placed] -> [paid placed] []
	// ship [paid] -> [shipped] [warehouse]
	// cancel [placed paid] -> [cancelled] []
	// when paid: [ship cancel]
}

// Every mistake is reported at once.
func ExampleDefinition_Build() {
	_, err := workflow.Define("order", 1,
		workflow.Start("place", Placed, place),
		workflow.On("pay", workflow.From(Placed), Paid, pay),
		workflow.On("ship", workflow.From("packed"), Shipped, ship).Role("warehouse"),
	).Final(Shipped).Build()
	fmt.Println(err)
	// Output:
	// workflow "order" has 4 mistakes:
	//   - state "paid" is a dead end: nothing leaves it and it is not declared final
	//   - state "packed" cannot be reached from a start
	//   - state "shipped" cannot be reached from a start
	//   - transition "ship" requires role "warehouse", which is not among the declared Roles
}

// A payload is refused with every field that is wrong, addressed as the caller
// wrote it.
func ExampleStep_Decode() {
	w := must(orders.Build())
	_, err := w.Named("place")[0].Decode([]byte(`{"customer":"c-1","total":-5}`))
	if e, ok := errors.AsType[*workflow.Error](err); ok {
		fmt.Println(e.Code, e.Code.Info().Status)
		for _, f := range e.Fields {
			fmt.Println(f.Pointer, f.Message)
		}
	}
	// Output:
	// invalid_payload 400
	// /cart is required
	// /total must be more than 0
}

// A decision is a function of the facts, the data and the payload.
func ExampleStep_Run() {
	w := must(orders.Build())
	step := w.Leaving("pay", Placed)
	facts := workflow.Facts{Now: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), Actor: "c-1", Version: 1, State: Placed}
	data := []byte(`{"customer":"c-1","cart":"k-9","total":1000,"paid":0,"placed_at":"2026-01-02T15:00:00Z"}`)
	for _, payload := range []string{`{"amount":400,"method":"card"}`, `{"amount":1000,"method":"card"}`, `{"amount":1001,"method":"card"}`} {
		p, err := step.Decode([]byte(payload))
		if err != nil {
			fmt.Println(err)
			continue
		}
		out, err := step.Run(facts, data, p)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(out.To, out.Events[0].Type, string(out.Events[0].Payload))
	}
	// Output:
	// placed order.payment {"amount":400,"method":"card"}
	// paid order.payment {"amount":1000,"method":"card"}
	// guard_refused: 1001 is more than the 1000 that is due
}

// The schema says what Decode accepts.
func ExampleStep_Schema() {
	w := must(orders.Build())
	raw := must(w.Named("place")[0].Schema())
	schema := jsontext.Value(raw).Clone()
	if err := schema.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		fmt.Println(err)
		return
	}
	if err := schema.Indent(jsontext.WithIndent("  ")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(schema)
	// Output:
	// {
	//   "$schema": "https://json-schema.org/draft/2020-12/schema",
	//   "additionalProperties": false,
	//   "properties": {
	//     "cart": {
	//       "minLength": 1,
	//       "type": "string"
	//     },
	//     "customer": {
	//       "maxLength": 32,
	//       "minLength": 1,
	//       "type": "string"
	//     },
	//     "note": {
	//       "maxLength": 80,
	//       "type": [
	//         "string",
	//         "null"
	//       ]
	//     },
	//     "total": {
	//       "description": "in cents",
	//       "exclusiveMinimum": 0,
	//       "format": "int64",
	//       "maximum": 9223372036854775807,
	//       "type": "integer"
	//     }
	//   },
	//   "required": [
	//     "customer",
	//     "cart",
	//     "total"
	//   ],
	//   "type": "object"
	// }
}
