// Package eventlog turns the rows of a log of traffic fines into the commands
// that package fines takes. Where there is no log, Generate makes one up.
//
// A log is CSV with one row per event and the events of a case together in their
// order:
//
//	case,activity,time,resource,amount,article,vehicle_class,points,dismissal,expense,payment_amount,total_payment_amount,notification_type,last_sent
//	A1,Create Fine,2006-07-24T00:00:00+02:00,561,35.0,157,A,0,NIL,,,0.0,,
//	A1,Send Fine,2006-12-05T00:00:00+01:00,,,,,,,11.0,,,,
package eventlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/transitions"
)

const header = "case,activity,time,resource,amount,article,vehicle_class,points,dismissal,expense," +
	"payment_amount,total_payment_amount,notification_type,last_sent\n"

// The columns of a row, by index.
const (
	colCase = iota
	colActivity
	colTime
	colResource
	colAmount
	colArticle
	colVehicleClass
	colPoints
	colDismissal
	colExpense
	colPayment
	colTotal
	colNotificationType
	colLastSent
	columns
)

// Command is a row, the case's event of that number counted from 1, as a command
// of the workflow "fine", addressed by the case number. Its idempotency key is
// "<case>-<number>". Tenant, actor and roles are left to the caller. The error is
// for a row that no log has; whether its values make sense is for the workflow to
// say.
func Command(row []string, number int) (transitions.Command, error) {
	r := reader{row: row}
	c := transitions.Command{Workflow: "fine", BusinessKey: row[colCase], Key: row[colCase] + "-" + strconv.Itoa(number)}
	var payload any
	c.Transition, payload = r.event()
	var err error
	if c.Payload, err = json.Marshal(payload); err != nil || r.err != nil {
		return c, fmt.Errorf("case %s, event %d: %w", row[colCase], number, errors.Join(r.err, err))
	}
	return c, nil
}

// reader reads the columns of a row.
type reader struct {
	row []string
	err error
}

// event is the transition that the row's activity is, and its payload.
func (r *reader) event() (transition string, payload any) {
	on := r.day()
	switch r.row[colActivity] {
	case "Create Fine":
		amount := r.cents(colAmount)
		return "create_fine", fines.CreateFine{Case: r.row[colCase], On: on, AmountCents: &amount, Article: r.whole(colArticle),
			VehicleClass: r.row[colVehicleClass], Points: r.whole(colPoints), Officer: r.whole(colResource), Dismissal: r.dismissal()}
	case "Send Fine":
		expense := r.cents(colExpense)
		return "send_fine", fines.SendFine{On: on, ExpenseCents: &expense}
	case "Insert Fine Notification":
		return "insert_fine_notification", fines.InsertFineNotification{On: on, NotificationType: r.row[colNotificationType],
			LastSent: r.row[colLastSent]}
	case "Add penalty":
		amount := r.cents(colAmount)
		return "add_penalty", fines.AddPenalty{On: on, AmountCents: &amount}
	case "Payment":
		return "payment", fines.Payment{On: on, AmountCents: r.cents(colPayment), TotalCents: r.cents(colTotal)}
	case "Insert Date Appeal to Prefecture":
		return "insert_date_appeal_to_prefecture", fines.Dated{On: on}
	case "Send Appeal to Prefecture":
		return "send_appeal_to_prefecture", fines.Ruling{On: on, Dismissal: r.dismissal()}
	case "Receive Result Appeal from Prefecture":
		return "receive_result_appeal_from_prefecture", fines.Dated{On: on}
	case "Notify Result Appeal to Offender":
		return "notify_result_appeal_to_offender", fines.Dated{On: on}
	case "Appeal to Judge":
		return "appeal_to_judge", fines.Ruling{On: on, Dismissal: r.dismissal()}
	case "Send for Credit Collection":
		return "send_for_credit_collection", fines.Dated{On: on}
	}
	r.err = errors.Join(r.err, fmt.Errorf("unknown activity %q", r.row[colActivity]))
	return "", nil
}

// day is the day of the event: every time of the log is a local midnight.
func (r *reader) day() fines.Date {
	t, err := time.Parse(time.RFC3339, r.row[colTime])
	r.err = errors.Join(r.err, err)
	return fines.DateOf(t)
}

// dismissal is the code of the authority that annulled the fine; "NIL" means none.
func (r *reader) dismissal() string {
	if r.row[colDismissal] == "NIL" {
		return ""
	}
	return r.row[colDismissal]
}

func (r *reader) whole(column int) int {
	n, err := strconv.Atoi(r.row[column])
	r.err = errors.Join(r.err, err)
	return n
}

// cents reads decimal euros.
func (r *reader) cents(column int) int64 {
	euros, err := strconv.ParseFloat(r.row[column], 64)
	r.err = errors.Join(r.err, err)
	return int64(math.Round(euros * 100))
}
