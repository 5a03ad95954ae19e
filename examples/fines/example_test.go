package fines_test

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/transitions"
)

// A fine is sent, served and raised. The offender pays the reduced sum too late
// and then the rest; the collector is not needed any more.
func Example() {
	w, err := fines.Workflow.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	var fine *transitions.Instance
	for i, entry := range []struct{ transition, payload string }{
		{"create_fine", `{"case":"A1","on":"2006-07-24","amount_cents":3500,"article":157,"vehicle_class":"A","officer":561}`},
		{"send_fine", `{"on":"2006-12-05","expense_cents":1100}`},
		{"insert_fine_notification", `{"on":"2007-01-15","notification_type":"P"}`},
		{"add_penalty", `{"on":"2007-03-10","amount_cents":7150}`},
		{"add_penalty", `{"on":"2007-03-16","amount_cents":7150}`},
		{"payment", `{"on":"2007-04-02","amount_cents":4600}`},
		{"payment", `{"on":"2007-05-02","amount_cents":3650}`},
		{"send_for_credit_collection", `{"on":"2009-03-30"}`},
	} {
		p, err := transitions.Prepare(transitions.Command{
			Key: fmt.Sprint("A1-", i+1), Workflow: "fine", Transition: entry.transition, BusinessKey: "A1", Payload: []byte(entry.payload),
		}, w, uuid.New)
		if err != nil {
			fmt.Println(err)
			return
		}
		d := transitions.Decide(p, w, fine, time.Now())
		if d.Err != nil {
			fmt.Println(entry.transition, "is refused:", d.Err.Message)
			continue
		}
		fine = d.After
		fmt.Println(entry.transition, "->", fine.State)
	}

	// Output:
	// create_fine -> issued
	// send_fine -> sent
	// insert_fine_notification -> notified
	// add_penalty is refused: the 60 days to pay are not over
	// add_penalty -> penalised
	// payment -> penalised
	// payment -> paid
	// send_for_credit_collection is refused: "send_for_credit_collection" is not possible in state "paid"; nothing can be done any more
}
