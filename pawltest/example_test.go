package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/workflow"
)

// A shop, as its own package would declare it.

type Order struct {
	Total  int64  `json:"total"`
	Charge string `json:"charge,omitempty"`
	Why    string `json:"why,omitempty"`
}

type Cart struct {
	Total int64 `json:"total" validate:"min=1"`
}

type Card struct {
	Number string `json:"number"`
}

const (
	Placed    workflow.State = "placed"
	Paying    workflow.State = "paying"
	Paid      workflow.State = "paid"
	Unpaid    workflow.State = "unpaid"
	Cancelled workflow.State = "cancelled"
	Expired   workflow.State = "expired"
)

var shop = workflow.Define("order", 1,
	workflow.Start("place", Placed, func(_ *workflow.Call, o *Order, c Cart) error {
		o.Total = c.Total
		return nil
	}),
	workflow.Do("pay", workflow.From(Placed, Unpaid), Paying, Paid, charge, func(_ *workflow.Call, o *Order, id string) error {
		o.Charge = id
		return nil
	}).OrElse(Unpaid, func(_ *workflow.Call, o *Order, f workflow.Failure) error {
		o.Why = f.Message
		return nil
	}).Undo(refund),
	workflow.On("cancel", workflow.From(Placed, Paying, Unpaid), Cancelled, nothing),
	workflow.On("expire", workflow.From(Placed, Unpaid), Expired, nothing),
).Final(Paid, Cancelled, Expired).After("unpaid", workflow.From(Placed, Unpaid), 24*time.Hour, "expire")

func nothing(*workflow.Call, *Order, workflow.None) error { return nil }

func charge(context.Context, *workflow.Attempt, Order, Card) (string, error) {
	return "", errors.New("this would ask a payment provider")
}

func refund(context.Context, *workflow.Attempt, Order, Card, *string) error {
	return errors.New("this would ask a payment provider")
}

// A test passes its t where these examples have none.
func Example() {
	sim := pawltest.Run(pawltest.Example, shop)
	order := sim.Start("order", "place", Cart{Total: 1299})

	sim.Skip(24*time.Hour - time.Second)
	fmt.Println(order.State(), order.Timers()[0].Name)
	sim.Skip(time.Second)
	fmt.Println(order.State(), order.Steps())

	// Output:
	// placed unpaid
	// expired [place expire]
}

// An activity that fails twice and succeeds. The clock goes through the waits
// between the attempts.
func ExampleFake() {
	sim := pawltest.Run(pawltest.Example, shop)
	pawltest.Fake(sim, "order", "pay", func(_ context.Context, a *workflow.Attempt, o Order, c Card) (string, error) {
		fmt.Printf("attempt %d to charge %d to card %s, %s after the beginning\n", a.Number, o.Total, c.Number, sim.Now().Sub(pawltest.Begin))
		if a.Number < 3 {
			return "", errors.New("the provider does not answer")
		}
		return "ch-1", nil
	})
	order := sim.Start("order", "place", Cart{Total: 1299})

	accepted := order.Do("pay", Card{Number: "4242"})
	fmt.Println(accepted.Status, order.State())
	done := sim.Await(accepted)
	fmt.Println(done.Status, order.State(), pawltest.Data[Order](order).Charge)

	// Output:
	// 202 paying
	// attempt 1 to charge 1299 to card 4242, 0s after the beginning
	// attempt 2 to charge 1299 to card 4242, 1s after the beginning
	// attempt 3 to charge 1299 to card 4242, 3s after the beginning
	// 200 paid ch-1
}

// A worker is lost when the provider has charged already. Another one takes
// over, with the same key, by which the provider knows what it has done.
func ExampleSim_LoseWorker() {
	sim := pawltest.Run(pawltest.Example, shop)
	charges := map[string]string{}
	pawltest.Fake(sim, "order", "pay", func(_ context.Context, a *workflow.Attempt, _ Order, _ Card) (string, error) {
		if charges[a.Key] == "" {
			charges[a.Key] = fmt.Sprint("ch-", len(charges)+1)
		}
		fmt.Printf("attempt %d, %s after the beginning: %s\n", a.Number, sim.Now().Sub(pawltest.Begin), charges[a.Key])
		return charges[a.Key], nil
	})
	order := sim.Start("order", "place", Cart{Total: 1299})

	sim.LoseWorker()
	paid := sim.Await(order.Do("pay", Card{Number: "4242"}))
	fmt.Println(paid.Status, order.State(), len(charges))

	// Output:
	// attempt 1, 0s after the beginning: ch-1
	// attempt 2, 30s after the beginning: ch-1
	// 200 paid 1
}
