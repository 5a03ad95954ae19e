package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/workflow"
)

// A payout reserves money and pays it. It can be opened again.

type Payout struct {
	Reserve string `json:"reserve,omitempty"`
}

// bank is what the activities of a payout ask.
type bank struct {
	reserves int
	closed   bool // the account of the receiver
}

func (b *bank) reserve(context.Context, *workflow.Attempt, Payout, workflow.None) (string, error) {
	b.reserves++
	return fmt.Sprint("reserve ", b.reserves), nil
}

func (b *bank) release(_ context.Context, _ *workflow.Attempt, _ Payout, _ workflow.None, reserve *string) error {
	fmt.Println("released", *reserve)
	return nil
}

func (b *bank) pay(_ context.Context, _ *workflow.Attempt, p Payout, _ workflow.None) (string, error) {
	if b.closed {
		return "", workflow.Final(errors.New("the account is closed"))
	}
	return "paid out of " + p.Reserve, nil
}

func payouts(b *bank) *workflow.Definition[Payout] {
	nothing := func(*workflow.Call, *Payout, workflow.None) error { return nil }
	reserved := func(_ *workflow.Call, p *Payout, reserve string) error { p.Reserve = reserve; return nil }
	paid := func(*workflow.Call, *Payout, string) error { return nil }
	failed := func(*workflow.Call, *Payout, workflow.Failure) error { return nil }
	return workflow.Define("payout", 1,
		workflow.Start("ask", "open", nothing),
		workflow.Do("reserve", workflow.From("open"), "reserving", "reserved", b.reserve, reserved).OrElse("open", failed).Undo(b.release),
		workflow.Do("pay", workflow.From("reserved"), "paying", "settled", b.pay, paid).OrElse("open", failed).
			Undoes("reserve").Settles("reserve"),
		workflow.On("reopen", workflow.From("settled"), "open", nothing),
		workflow.On("close", workflow.From("open", "settled"), "closed", nothing),
	).Final("closed")
}

// The second payment fails. It releases the second reserve; the first one was paid out.
func Example_settles() {
	b := &bank{}
	sim := pawltest.Run(pawltest.Example, payouts(b))
	p := sim.Start("payout", "ask", nil)
	for _, closed := range []bool{false, true} {
		b.closed = closed
		p.Do("reserve", nil)
		sim.Skip(time.Minute)
		p.Do("pay", nil)
		sim.Skip(time.Minute)
		if p.State() == "settled" {
			p.Do("reopen", nil)
		}
	}
	fmt.Println(p.State())
	// Output:
	// released reserve 2
	// open
}
