package workflow

import (
	"slices"
	"testing"
	"time"
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
	if err != nil {
		t.Fatal(err)
	}
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
		if !slices.Equal(got, want) {
			t.Errorf("in %s run %v", state, got)
		}
	}
}

func TestTimerIsDue(t *testing.T) {
	w := timed(t)
	entered := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	expire, until := w.Timers[0], w.Timers[1]
	if due, err := expire.Due(entered, []byte("not even looked at")); err != nil || !due.Equal(entered.Add(48*time.Hour)) ||
		expire.FromData() {
		t.Errorf("after: %s, %v", due, err)
	}
	if due, err := until.Due(entered, []byte(`{"until":"2027-01-02T00:00:00Z"}`)); err != nil || due.Year() != 2027 || !until.FromData() {
		t.Errorf("at: %s, %v", due, err)
	}
	if due, err := until.Due(entered, []byte(`{}`)); err != nil || !due.IsZero() {
		t.Errorf("never: %s, %v", due, err)
	}
	if _, err := until.Due(entered, []byte(`{"until":5}`)); CodeOf(err) != NotOnThisNode {
		t.Errorf("other data: %v", err)
	}
}

func TestBuiltTimerDoesNotChange(t *testing.T) {
	in := From("a", "b")
	none := func(*Call, *lease, None) error { return nil }
	w, err := Define("w", 1, Start("go", "a", none), On("on", From("a"), "b", none), On("end", From("a", "b"), "c", none)).
		Final("c").After("t", in, time.Hour, "end").Build()
	if err != nil {
		t.Fatal(err)
	}
	in[0] = "c"
	if w.TimersIn("a") == nil || w.TimersIn("c") != nil {
		t.Error("the timer follows the caller's slice")
	}
}
