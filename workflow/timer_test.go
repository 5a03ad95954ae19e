package workflow

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type lease struct {
	Until time.Time `json:"until"`
}

// timed has a timer after a time and one from the data.
func timed(t testing.TB) *Workflow {
	t.Helper()
	none := func(*Call, *lease, None) error { return nil }
	w, err := Define("lease", 1,
		Start("offer", "offered", none),
		On("sign", From("offered"), "running", none),
		On("remind", From("running", "reminded"), "reminded", none),
		On("end", From("offered", "running", "reminded"), "ended", none),
	).Final("ended").
		After("expire", From("offered"), 48*time.Hour, "end").
		At("until", From("running", "reminded"), func(l lease) time.Time { return l.Until }, "end").
		After("reminder", From("running"), 0, "remind").
		Build()
	require.NoError(t, err)
	return w
}

func TestTimersInAState(t *testing.T) {
	w := timed(t)
	for state, want := range map[State][]string{
		"offered": {"expire"}, "running": {"until", "reminder"}, "reminded": {"until"}, "ended": nil, "unknown": nil,
	} {
		var got []string
		for _, timer := range w.TimersIn(state) {
			got = append(got, timer.Name)
		}
		assert.Truef(t, slices.Equal(got, want), "in %s run %v", state, got)
	}
}

func TestTimerIsDue(t *testing.T) {
	w := timed(t)
	entered := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	expire, until := w.Timers[0], w.Timers[1]
	due, err := expire.Due(entered, []byte("not even looked at"))
	assert.Truef(t, err == nil && due.Equal(entered.Add(48*time.Hour)) && !expire.FromData(), "after: %s, %v", due, err)
	due, err = until.Due(entered, []byte(`{"until":"2027-01-02T00:00:00Z"}`))
	assert.Truef(t, err == nil && due.Year() == 2027 && until.FromData(), "at: %s, %v", due, err)
	due, err = until.Due(entered, []byte(`{}`))
	assert.Truef(t, err == nil && due.IsZero(), "never: %s, %v", due, err)
	_, err = until.Due(entered, []byte(`{"until":5}`))
	assert.Equalf(t, NotOnThisNode, CodeOf(err), "other data: %v", err)
}
