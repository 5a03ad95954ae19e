package console_test

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/workflow"
)

// Claim is the data of the workflow that the tests look at: it can stand still in every way.
type Claim struct {
	Number string `json:"number"`
	Who    string `json:"who"`
	Amount int64  `json:"amount"`
	Note   string `json:"note,omitempty"`
}

type File struct {
	Number string `json:"number" validate:"required,max=100"`
	Who    string `json:"who" validate:"required"`
	Amount int64  `json:"amount" validate:"min=1"`
	Urgent bool   `json:"urgent,omitempty"`
	Kind   string `json:"kind,omitempty" validate:"omitempty,oneof=car house"`
	Bank   struct {
		IBAN string `json:"iban,omitempty"`
	} `json:"bank,omitzero"`
}

type Noted struct {
	Note string `json:"note"`
}

const (
	filed    workflow.State = "filed"
	approved workflow.State = "approved"
	paying   workflow.State = "paying"
	paid     workflow.State = "paid"
	unpaid   workflow.State = "unpaid"
	closed   workflow.State = "closed"
)

// bank is what the activity of the tests does: it asks the test.
type bank struct {
	asked chan chan<- error
}

func (b *bank) pay(ctx context.Context, a *workflow.Attempt, _ Claim, p Noted) (int, error) {
	if p.Note != "" {
		if err := a.Report(p); err != nil {
			return 0, err
		}
	}
	answer := make(chan error, 1)
	select {
	case b.asked <- answer:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	select {
	case err := <-answer:
		return 1, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

var errBank = errors.New("the bank is <b>closed</b>")

// claims is a workflow whose activity asks the bank.
func claims(b *bank) *workflow.Definition[Claim] {
	return workflow.Define("claim", 1,
		workflow.Start("file", filed, func(_ *workflow.Call, d *Claim, p File) error {
			*d = Claim{Number: p.Number, Who: p.Who, Amount: p.Amount}
			return nil
		}).BusinessKey(func(p File) string { return p.Number }).Doc("Somebody asks for money."),
		workflow.On("note", workflow.From(filed, approved), workflow.Stay, func(c *workflow.Call, d *Claim, p Noted) error {
			d.Note = p.Note
			c.Because(p.Note[:min(len(p.Note), 1000)])
			return nil
		}),
		workflow.On("approve", workflow.From(filed), approved, func(*workflow.Call, *Claim, workflow.None) error { return nil }).
			Role("boss").NotBy("file").Guard("not too much", func(_ *workflow.Call, d Claim) error {
			if d.Amount > 1000 {
				return workflow.Refuse("%d is more than anybody may approve", d.Amount)
			}
			return nil
		}),
		workflow.Do("pay", workflow.From(approved, unpaid), paying, paid, b.pay, func(*workflow.Call, *Claim, int) error { return nil }).
			OrElse(unpaid, func(_ *workflow.Call, d *Claim, f workflow.Failure) error {
				d.Note = f.Message
				return nil
			}).AskOperator().Retry(workflow.Retry{Attempts: 5, First: time.Hour, Max: time.Hour}).Timeout(time.Minute),
		workflow.Do("call", workflow.From(approved), "calling", approved, b.pay, func(*workflow.Call, *Claim, int) error { return nil }).
			OrElse(unpaid, func(*workflow.Call, *Claim, workflow.Failure) error { return nil }).
			Retry(workflow.Retry{Attempts: 5, First: time.Hour, Max: time.Hour}).Timeout(time.Minute),
		workflow.On("close", workflow.From(paid), closed, func(*workflow.Call, *Claim, workflow.None) error { return nil }),
		workflow.On("lapse", workflow.From(filed), closed, func(*workflow.Call, *Claim, workflow.None) error { return nil }).Role("clock"),
	).
		After("term", workflow.From(filed), 24*time.Hour, "lapse").
		Final(closed).Roles("boss", "clock").
		Attr("who", func(c Claim) string { return c.Who })
}
