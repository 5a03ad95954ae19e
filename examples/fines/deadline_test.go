package fines_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const day = 24 * time.Hour

// recorded is a fine of 35 euros on the first day of the run, and of 143 at most.
func recorded(maximum int64) fines.CreateFine {
	return fines.CreateFine{Case: "D1", On: "2026-01-01", AmountCents: new(int64(3500)), MaximumCents: maximum,
		Article: 157, VehicleClass: "A", Officer: 561}
}

var (
	posted  = fines.SendFine{On: "2026-01-01", ExpenseCents: new(int64(1100))}
	notice  = fines.InsertFineNotification{On: "2026-01-01", NotificationType: "P"} // so the term is over on March 2
	raising = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
)

// served is a fine of which the notice was served on the day of the violation.
func served(t *testing.T) (*pawltest.Sim, *pawltest.Case) {
	t.Helper()
	sim := pawltest.Run(t, fines.Workflow)
	c := sim.Start("fine", "create_fine", recorded(14300))
	c.Do("send_fine", posted)
	c.Do("insert_fine_notification", notice)
	return sim, c
}

func wantTimers(t *testing.T, c *pawltest.Case, want ...time.Time) {
	t.Helper()
	timers := c.Timers()
	assert.Truef(t, len(timers) == len(want) && (len(want) == 0 || (timers[0].Do == "raise" && timers[0].At.Equal(want[0]))),
		"the timers are %+v, want %v", timers, want)
}

func wantRaised(t *testing.T, c *pawltest.Case, state workflow.State, cents int64, on fines.Date) {
	t.Helper()
	f := pawltest.Data[fines.Fine](c)
	assert.Truef(t, c.State() == state && f.Raised == cents && f.RaisedOn == on,
		"the fine is %s, raised to %d on %q; want %s, %d, %q", c.State(), f.Raised, f.RaisedOn, state, cents, on)
}

// Half of the maximum is owed from the first moment after the term.
func TestFineIsRaisedWhenTheTermIsOver(t *testing.T) {
	sim, c := served(t)
	wantTimers(t, c, raising)
	sim.Skip(60*day - time.Second)
	wantRaised(t, c, fines.Notified, 0, "")
	sim.Skip(time.Second)
	wantRaised(t, c, fines.Penalised, 7150, "2026-03-02")
	last := c.History()[3]
	assert.Truef(t, last.Actor == "pawl:timer" && last.At.Equal(raising), "raised at %v by %s", last.At, last.Actor)
	wantTimers(t, c)
}

// An appeal does not stop the term, wherever the fine is when it is over.
func TestContestedFineIsRaisedWhereItIs(t *testing.T) {
	sim, c := served(t)
	c.Do("insert_date_appeal_to_prefecture", fines.Dated{On: "2026-01-10"})
	wantTimers(t, c, raising)
	c.Do("send_appeal_to_prefecture", fines.Ruling{On: "2026-01-20"})
	sim.Skip(365 * day)
	wantRaised(t, c, fines.Forwarded, 7150, "2026-03-02")
}

// Money on account changes nothing; a fine that is settled is left alone.
func TestSettledFineIsNotRaised(t *testing.T) {
	sim, c := served(t)
	c.Do("payment", fines.Payment{On: "2026-02-01", AmountCents: 100})
	wantTimers(t, c, raising)
	c.Do("payment", fines.Payment{On: "2026-02-02", AmountCents: 4500})
	wantTimers(t, c)
	sim.Skip(365 * day)
	wantRaised(t, c, fines.Paid, 0, "")
}

// A service that is entered late finds the term over already.
func TestLateEntryOfTheServiceRaisesAtOnce(t *testing.T) {
	sim := pawltest.Run(t, fines.Workflow)
	c := sim.Start("fine", "create_fine", recorded(14300))
	c.Do("send_fine", posted)
	sim.Skip(100 * day)
	c.Do("insert_fine_notification", notice)
	sim.Settle()
	wantRaised(t, c, fines.Penalised, 7150, "2026-04-11")
}

// As in the log: the office enters the penalty, and nothing happens by itself.
func TestFineWithoutItsMaximumWaitsForTheOffice(t *testing.T) {
	sim := pawltest.Run(t, fines.Workflow)
	c := sim.Start("fine", "create_fine", recorded(0))
	c.Do("send_fine", posted)
	c.Do("insert_fine_notification", notice)
	wantTimers(t, c)
	sim.Skip(365 * day)
	wantRaised(t, c, fines.Notified, 0, "")
	_, err := c.Try("raise", nil)
	assert.EqualError(t, err, "guard_refused: the fine was recorded without its maximum, so the office adds the penalty",
		"raising it by hand")
	c.Do("add_penalty", fines.AddPenalty{On: "2026-03-02", AmountCents: new(int64(7000))})
	wantRaised(t, c, fines.Penalised, 7000, "2026-03-02")
}

// Whoever raises, it happens once and never early.
func TestFineIsRaisedOnce(t *testing.T) {
	sim, c := served(t)
	_, err := c.Try("raise", nil)
	assert.EqualError(t, err, "guard_refused: the 60 days to pay are not over", "raising it early")
	c.Do("insert_date_appeal_to_prefecture", fines.Dated{On: "2026-01-10"})
	c.Do("add_penalty", fines.AddPenalty{On: "2026-03-02", AmountCents: new(int64(7000))})
	wantTimers(t, c)
	sim.Skip(365 * day)
	wantRaised(t, c, fines.Appealed, 7000, "2026-03-02")
	_, err = c.Try("raise", nil)
	assert.EqualError(t, err, "guard_refused: the sum was raised before", "raising it again")
}

func TestHalfOfTheMaximumIsAboveTheFine(t *testing.T) {
	for maximum, ok := range map[int64]bool{1: false, 7000: false, 7001: false, 7002: true} {
		w := pawltest.Run(t, fines.Workflow)
		r, err := w.Submit(transitions.Command{Workflow: "fine", Transition: "create_fine", Key: "k", Payload: encoded(t, recorded(maximum))})
		require.NoError(t, err)
		if refused := r.Err(); (refused == nil) != ok || refused != nil && workflow.CodeOf(refused) != workflow.GuardRefused {
			t.Errorf("a maximum of %d: %v", maximum, refused)
		}
	}
}

func encoded(t *testing.T, v fines.CreateFine) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}
