package fines_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A fine is sent, served and raised. The offender pays the reduced sum too late
// and then the rest; the collector is not needed any more.
func Example() {
	sim := pawltest.Run(pawltest.Example, fines.Workflow)
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
		r, err := sim.Submit(transitions.Command{
			Key: fmt.Sprint("A1-", i+1), Workflow: "fine", Transition: entry.transition, BusinessKey: "A1", Payload: []byte(entry.payload),
		})
		if err == nil {
			err = r.Err()
		}
		if refusal, is := errors.AsType[*workflow.Error](err); is {
			fmt.Println(entry.transition, "is refused:", refusal.Message)
			continue
		}
		fmt.Println(entry.transition, "->", sim.Case(r.Instance).State())
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

// A fine that was recorded with its maximum is raised by itself, sixty days after
// its notice was served. The clock skips them.
func Example_deadline() {
	sim := pawltest.Run(pawltest.Example, fines.Workflow)
	fine := sim.Start("fine", "create_fine", fines.CreateFine{Case: "A1", On: "2026-01-01", AmountCents: new(int64(3500)), MaximumCents: 14300,
		Article: 157, VehicleClass: "A", Officer: 561})
	sim.Skip(9 * 24 * time.Hour)
	fine.Do("send_fine", fines.SendFine{On: "2026-01-10", ExpenseCents: new(int64(1100))})
	sim.Skip(10 * 24 * time.Hour)
	fine.Do("insert_fine_notification", fines.InsertFineNotification{On: "2026-01-20", NotificationType: "P"})
	sim.Skip(365 * 24 * time.Hour)
	for _, entry := range fine.History() {
		fmt.Println(entry.At.Format(time.DateOnly), entry.Transition, "->", entry.To)
	}
	f := pawltest.Data[fines.Fine](fine)
	fmt.Println("owed in time:", f.Owed("2026-03-20"), "and later:", f.Owed("2026-04-20"))

	// Output:
	// 2026-01-01 create_fine -> issued
	// 2026-01-10 send_fine -> sent
	// 2026-01-20 insert_fine_notification -> notified
	// 2026-03-21 raise -> penalised
	// owed in time: 4600 and later: 8250
}
