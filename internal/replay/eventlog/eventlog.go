// Package eventlog reads a log of traffic fines and turns its events into the
// commands that package fines takes. Where there is no log, Generate makes one
// up.
//
// A log is CSV, plain or gzip'd, with one row per event and the events of a
// case together in their order:
//
//	case,activity,time,resource,amount,article,vehicle_class,points,dismissal,expense,payment_amount,total_payment_amount,notification_type,last_sent
//	A1,Create Fine,2006-07-24T00:00:00+02:00,561,35.0,157,A,0,NIL,,,0.0,,
//	A1,Send Fine,2006-12-05T00:00:00+01:00,,,,,,,11.0,,,,
package eventlog

import (
	"encoding/json"
	"fmt"
	"iter"
	"strconv"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/transitions"
)

// Cases is a log, case by case. An error ends it.
type Cases = iter.Seq2[Case, error]

// Case is a fine with its events in their order. The first is "create_fine", no
// other is.
type Case struct {
	ID     string // letters and digits
	Events []Event
}

// Event is one row of a log. What its activity does not have is zero. All sums
// are in euro cents.
type Event struct {
	Case       string
	Number     int    // counts the case's events from 1
	Transition string // of the workflow "fine"
	On         fines.Date

	Officer, Article, Points         int    // create_fine
	VehicleClass                     string // create_fine
	AmountCents                      int64  // create_fine: the reduced sum; add_penalty: the raised one
	ExpenseCents                     int64  // send_fine
	NotificationType, LastSent       string // insert_fine_notification
	PaymentCents, TotalPaymentsCents int64  // payment
	Dismissal                        string // create_fine, send_appeal_to_prefecture, appeal_to_judge
}

// Command is the event as a command of the workflow "fine", addressed by the
// case number. Its idempotency key, "<case>-<number>", is the same whenever the
// log is read. Tenant, actor and roles are left to the caller. The error is for
// a Transition that no log has.
func (e Event) Command() (transitions.Command, error) {
	payload, err := e.payload()
	if err != nil {
		return transitions.Command{}, fmt.Errorf("case %s, event %d: %w", e.Case, e.Number, err)
	}
	return transitions.Command{
		Key:      e.Case + "-" + strconv.Itoa(e.Number),
		Workflow: "fine", Transition: e.Transition, BusinessKey: e.Case, Payload: payload,
	}, nil
}

func (e Event) payload() ([]byte, error) {
	switch e.Transition {
	case createFine:
		return json.Marshal(fines.CreateFine{
			Case: e.Case, On: e.On, AmountCents: &e.AmountCents, Article: e.Article, VehicleClass: e.VehicleClass,
			Points: e.Points, Officer: e.Officer, Dismissal: e.Dismissal,
		})
	case sendFine:
		return json.Marshal(fines.SendFine{On: e.On, ExpenseCents: &e.ExpenseCents})
	case insertNotification:
		return json.Marshal(fines.InsertFineNotification{On: e.On, NotificationType: e.NotificationType, LastSent: e.LastSent})
	case addPenalty:
		return json.Marshal(fines.AddPenalty{On: e.On, AmountCents: &e.AmountCents})
	case payment:
		return json.Marshal(fines.Payment{On: e.On, AmountCents: e.PaymentCents, TotalCents: e.TotalPaymentsCents})
	case sendAppeal, appealToJudge:
		return json.Marshal(fines.Ruling{On: e.On, Dismissal: e.Dismissal})
	case insertAppeal, receiveResult, notifyResult, sendForCollection:
		return json.Marshal(fines.Dated{On: e.On})
	default:
		return nil, fmt.Errorf("unknown transition %q", e.Transition)
	}
}
