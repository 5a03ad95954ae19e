package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/workflow"
)

const (
	Paying        workflow.State = "paying"
	PaymentFailed workflow.State = "payment-failed"
	Expired       workflow.State = "expired"
)

// Receipt is what the payment provider answers.
type Receipt struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"`
}

var errCardRefused = errors.New("the card was refused")

// charge asks the provider, outside of any transaction. The key is the same on
// every attempt, so that the provider charges once.
func charge(_ context.Context, a *workflow.Attempt, o Order, p Payment) (Receipt, error) {
	if p.Method == "invoice" {
		return Receipt{}, workflow.Final(errCardRefused)
	}
	return Receipt{ID: "ch-" + a.Key, Amount: p.Amount}, nil
}

func refund(_ context.Context, a *workflow.Attempt, _ Order, _ Payment, r *Receipt) error {
	if r == nil {
		fmt.Println("give back whatever was charged for", a.Key)
		return nil
	}
	fmt.Println("give back", r.ID)
	return nil
}

func recordCharge(_ *workflow.Call, o *Order, r Receipt) error {
	o.Paid += r.Amount
	return nil
}

func explain(c *workflow.Call, _ *Order, f workflow.Failure) error {
	c.Because(f.Message)
	return nil
}

func expire(*workflow.Call, *Order, workflow.None) error { return nil }

var charging = workflow.Define("order", 2,
	workflow.Start("place", Placed, place).BusinessKey(cartOf),
	workflow.Do("pay", workflow.From(Placed), Paying, Paid, charge, recordCharge).
		OrElse(PaymentFailed, explain).Undo(refund).
		Timeout(10*time.Second).Retry(workflow.Retry{Attempts: 5}),
	workflow.On("ship", workflow.From(Paid), Shipped, ship).Role("warehouse"),
	workflow.On("cancel", workflow.From(Placed, Paying), Cancelled, cancel),
	workflow.On("expire", workflow.From(Placed), Expired, expire),
).Final(Shipped, Cancelled, PaymentFailed, Expired).Roles("warehouse").
	After("payment-deadline", workflow.From(Placed), 48*time.Hour, "expire")

// A payment takes two decisions, and the provider in between.
func ExampleDo() {
	w := must(charging.Build())
	pay := w.Leaving("pay", Placed)
	payload := must(pay.Decode([]byte(`{"amount":1000,"method":"card"}`)))
	accepted := must(pay.Run(workflow.Facts{State: Placed}, []byte(`{"total":1000}`), payload))
	fmt.Println("accepted:", accepted.To, w.Allowed(accepted.To))

	attempt := workflow.NewAttempt(workflow.Attempt{Key: "7f3a", Number: 1}, nil)
	result := must(pay.Work.Do(context.Background(), attempt, accepted.Data, []byte(`{"amount":1000,"method":"card"}`)))
	fmt.Println("charged:", string(result))

	ended := must(pay.Done(workflow.Facts{State: Paying}, accepted.Data, result))
	fmt.Println("ended:", ended.To)
	// Output:
	// accepted: paying [cancel]
	// charged: {"id":"ch-7f3a","amount":1000}
	// ended: paid
}

// After a final failure of the work the instance goes to the state of OrElse.
func ExampleActivity_OrElse() {
	w := must(charging.Build())
	pay := w.Leaving("pay", Placed)
	attempt := workflow.NewAttempt(workflow.Attempt{Key: "7f3a", Number: 1}, nil)
	_, failure := pay.Work.Do(context.Background(), attempt, nil, []byte(`{"amount":1000,"method":"invoice"}`))
	fmt.Println("try again:", !workflow.IsFinal(failure))

	ended, err := pay.Fail(workflow.Facts{State: Paying}, nil,
		workflow.Failure{Kind: workflow.FailureError, Message: failure.Error(), Attempts: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ended.To+":", ended.Reason)
	// Output:
	// try again: false
	// payment-failed: the card was refused
}

// An effect is undone by its result, or by its key if the result is unknown.
func ExampleActivity_Undo() {
	w := must(charging.Build())
	pay := w.Leaving("pay", Placed)
	attempt := workflow.NewAttempt(workflow.Attempt{Key: "7f3a", Number: 2}, nil)
	for _, result := range [][]byte{[]byte(`{"id":"ch-7f3a","amount":1000}`), nil} {
		if err := pay.Work.Undo(context.Background(), attempt, nil, nil, result); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// give back ch-7f3a
	// give back whatever was charged for 7f3a
}

// An order that is not paid in time expires by itself.
func ExampleDefinition_After() {
	w := must(charging.Build())
	placedAt := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for _, t := range w.TimersIn(Placed) {
		due := must(t.Due(placedAt, nil))
		fmt.Println(t.Name, "does", t.Do, "at", due.Format(time.DateTime))
	}
	fmt.Println("timers when paid:", len(w.TimersIn(Paid)))
	// Output:
	// payment-deadline does expire at 2026-01-04 15:04:05
	// timers when paid: 0
}

// An order requests a delivery from another workflow, and continues at its completion.
func ExampleCall_Spawn() {
	type Shipment struct {
		Address string `json:"address"`
	}
	type Delivery struct {
		SignedBy string `json:"signed_by"`
	}
	w, err := workflow.Define("order", 3,
		workflow.Start("place", Placed, func(c *workflow.Call, _ *Order, p Place) error {
			c.Spawn(workflow.Child{Workflow: "delivery", Transition: "send", Payload: Shipment{"1 Main St"}, End: "delivered"})
			return nil
		}),
		workflow.On("delivered", workflow.From(Placed), Shipped, func(c *workflow.Call, _ *Order, e workflow.Ended[Delivery]) error {
			c.Because(fmt.Sprintf("%s %s, signed by %s", e.Workflow, e.State, e.Data.SignedBy))
			return nil
		}),
	).Final(Shipped).Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range []struct {
		step    *workflow.Step
		payload string
	}{
		{w.Named("place")[0], `{"customer":"c-1","cart":"k-9","total":5}`},
		{w.Leaving("delivered", Placed), `{"child":"01936b0e-0000-7000-8000-000000000001","workflow":"delivery","state":"done",` +
			`"data":{"signed_by":"Ann"}}`},
	} {
		p := must(c.step.Decode([]byte(c.payload)))
		out := must(c.step.Run(workflow.Facts{State: Placed}, nil, p))
		for _, s := range out.Spawns {
			fmt.Println(s.Workflow, s.Transition, string(s.Payload), "then", s.End)
		}
		if out.Reason != "" {
			fmt.Println(out.Reason)
		}
	}
	// Output:
	// delivery send {"address":"1 Main St"} then delivered
	// delivery done, signed by Ann
}
