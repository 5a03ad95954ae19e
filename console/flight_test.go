package console

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/transitions"
)

// However a command in flight stands, that is said.
func TestACommandInFlightSaysHowItStands(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return now.Add(d) }
	for name, c := range map[string]struct {
		status api.CommandStatus
		kind   string
		has    string
		when   time.Time
	}{
		"waits for its time": {api.CommandStatus{Status: transitions.Pending, RunAt: at(time.Hour)}, whyWaits, "waits for its time",
			at(time.Hour)},
		"was just accepted": {api.CommandStatus{Status: transitions.Pending, RunAt: at(-time.Second)}, whyWaits, "or for a worker",
			at(-time.Second)},
		"nobody takes it": {api.CommandStatus{Status: transitions.Pending, RunAt: at(-time.Minute)}, whyWaits, "has a free worker",
			at(-time.Minute)},
		"is worked on": {api.CommandStatus{Status: transitions.Processing, Attempt: 3, Failures: 1, LockedUntil: at(time.Second)},
			whyWorks,
			"attempt 2 is running", at(time.Second)},
		"the worker is lost": {api.CommandStatus{Status: transitions.Processing, Attempt: 2, LockedUntil: at(-time.Second)}, whyLost,
			"has expired", at(-time.Second)},
		"has failed": {api.CommandStatus{Status: transitions.FailedRetryable, Attempt: 3, Failures: 2, RunAt: at(time.Hour),
			Failure: "no"}, whyFails, "2 failures in total", at(time.Hour)},
		"is to stop": {api.CommandStatus{Status: transitions.Processing, CancelledBy: "ann", LockedUntil: at(time.Second)}, whyWorks,
			"ann has requested its cancellation", at(time.Second)},
		"has ended meanwhile": {api.CommandStatus{Status: transitions.Succeeded}, "", "", time.Time{}},
	} {
		got := flightReason(&c.status, now)
		assert.Truef(t, got.Kind == c.kind && strings.Contains(got.Text, c.has) && got.When.Equal(c.when) && got.Said == c.status.Failure,
			"%s: %+v", name, got)
	}
}
