package order_test

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// desk decides commands on one order in memory. Deciding is pure, so a workflow
// can be tried, and tested, without a database.
type desk struct {
	workflow *workflow.Workflow
	order    *transitions.Instance // nil until it is placed
}

func newDesk() *desk {
	w, err := order.Workflow.Build()
	if err != nil {
		panic(err)
	}
	return &desk{workflow: w}
}

// do decides a command of c-1's cart k-9 and keeps the order that comes out.
func (d *desk) do(transition, payload string, roles ...string) (transitions.Decision, error) {
	p, err := transitions.Prepare(transitions.Command{
		Key: "try-" + transition, Workflow: "order", Transition: transition, BusinessKey: "c-1:k-9",
		Payload: []byte(payload), Roles: roles,
	}, d.workflow, uuid.New)
	if err != nil {
		return transitions.Decision{}, err
	}
	decision := transitions.Decide(p, d.workflow, d.order, time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC))
	if decision.After != nil {
		d.order = decision.After
	}
	return decision, nil
}

// show prints what the caller of a command would see of it.
func (d *desk) show(transition, payload string, roles ...string) {
	decision, err := d.do(transition, payload, roles...)
	switch {
	case err != nil:
		fmt.Println(transition, "is malformed:", err)
	case decision.Err != nil:
		fmt.Println(transition, decision.Code, decision.Err)
	default:
		fmt.Println(transition, decision.Code, d.order.State)
	}
}

const cart = `{"customer":"c-1","cart":"k-9","total":129900,"currency":"EUR"}`

// An order goes from the cart to the parcel and comes back.
func Example() {
	d := newDesk()
	d.show("place", cart)
	d.show("pay", `{"method":"card"}`)
	d.show("ship", `{"carrier":"Post","tracking":"00340434"}`, order.Warehouse)
	d.show("refund", `{"reason":"arrived broken"}`)
	fmt.Println(string(d.order.Data))

	// Output:
	// place 201 placed
	// pay 200 paid
	// ship 200 shipped
	// refund 200 refunded
	// {"customer":"c-1","cart":"k-9","total":129900,"currency":"EUR","method":"card","carrier":"Post","tracking":"00340434"}
}

// What the state or the role does not allow is refused, and the order stays as
// it was.
func Example_refused() {
	d := newDesk()
	d.show("place", cart)
	d.show("ship", `{"carrier":"Post","tracking":"00340434"}`, order.Warehouse)
	d.show("pay", `{"method":"card"}`)
	d.show("ship", `{"carrier":"Post","tracking":"00340434"}`)
	d.show("cancel", `{"reason":"changed my mind"}`)

	// Output:
	// place 201 placed
	// ship 409 illegal_transition: "ship" is not possible in state "placed"; allowed are: pay, cancel
	// pay 200 paid
	// ship 403 role_required: "ship" requires role warehouse
	// cancel 409 illegal_transition: "cancel" is not possible in state "paid"; allowed are: ship, refund
}

// A cart is ordered once: placing it again answers with the order as it is now.
func Example_placedTwice() {
	d := newDesk()
	d.show("place", cart)
	d.show("pay", `{"method":"transfer"}`)
	decision, err := d.do("place", cart)
	fmt.Println(decision.Code, string(decision.Body), err)

	// Output:
	// place 201 placed
	// pay 200 paid
	// 200 {"instance":"6ad8b798-06e8-877f-bd56-5b6f8fb2b34e","workflow":"order","transition":"place","state":"paid","version":2,"at":"2026-01-02T15:04:05Z","existing":true} <nil>
}

// What can be done now, and why not, is known without trying.
func Example_explained() {
	d := newDesk()
	d.show("place", cart)
	d.show("pay", `{"method":"invoice"}`)
	for _, o := range transitions.Explain(d.workflow, d.order, "ann", nil, d.order.UpdatedAt) {
		fmt.Println(o.Transition, "allowed:", o.Allowed)
		for _, r := range o.Reasons {
			fmt.Println("  because:", r.Message)
		}
	}

	// Output:
	// place 201 placed
	// pay 200 paid
	// pay allowed: false
	//   because: not possible in state "paid"
	// ship allowed: false
	//   because: "ship" requires role warehouse
	// refund allowed: true
	// cancel allowed: false
	//   because: not possible in state "paid"
}
