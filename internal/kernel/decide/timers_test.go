package decide

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// inHours is a wish to leave so many hours after noon.
func inHours(n int) string {
	return fmt.Sprintf(`{"leaves":%q}`, noon.Add(time.Duration(n)*time.Hour).Format(time.RFC3339Nano))
}

// wantTimers holds what a decision arms and disarms against what it should.
func wantTimers(t *testing.T, l *life, d Decision, armed, disarmed []string) {
	t.Helper()
	for i, name := range disarmed {
		disarmed[i] = timerOf(l, name)
	}
	got := plans(d)
	assert.Truef(t, slices.Equal(got, armed), "armed %q, want %q", got, armed)
	assert.Truef(t, slices.Equal(d.Disarmed, disarmed), "disarmed %q, want %q", d.Disarmed, disarmed)
}

func TestATimerIsArmedOnEnteringItsStates(t *testing.T) {
	t.Parallel()
	l := &life{t: t, w: built(t, tripDefinition()), now: noon}
	d := l.must(l.decide(l.command("plan", `{}`)))
	wantTimers(t, l, d, []string{"scheduled nag at 01 13:00", "scheduled end at 02 12:00"}, nil)
	nag := d.Commands[0]
	assert.Truef(t, nag.Scope == timerOf(l, "nagging") && nag.Key == "1" && nag.Actor == "pawl:timer" && nag.Instance == l.inst.ID &&
		nag.Workflow == "trip",
		"the timer is %+v", nag)
	asked, err := nag.flight().Asked()
	assert.Truef(t, err == nil && slices.Equal(asked.Roles, []string{transitions.AnyRole}) && string(asked.Payload) == `{}`,
		"it asks %+v, %v", asked, err)
}

func TestATimerRunsOnFromOneOfItsStatesToAnother(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.now = noon.Add(time.Minute)
	_, d := l.decide(l.command("edit", `{}`))
	wantTimers(t, l, l.must(nil, d), nil, nil)
	_, d = l.decide(l.command("book", `{}`)) // nagging does not run while it is booked, expiry does
	wantTimers(t, l, l.must(nil, d), nil, []string{"nagging"})
}

func TestTimer_ArmAndDisarm(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.accept("book", `{}`)
	l.now = noon.Add(30 * time.Minute)
	d := l.must(nil, l.end(f, failure(workflow.FailureError, "no seats", false)))
	wantTimers(t, l, d, []string{"scheduled nag at 01 13:30"}, nil)
	assert.Equal(t, "3", d.Commands[0].Key, "its key, which it may have had before")
	f = l.accept("book", `{}`)
	wantTimers(t, l, l.must(nil, l.end(f, Outcome{Result: []byte(`{}`)})), nil, []string{"expiry"})
}

func TestATimerWhoseTimeIsInTheDataFollowsIt(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.do("edit", inHours(50)) // before it runs
	f := l.accept("book", `{}`)
	wantTimers(t, l, l.must(nil, l.end(f, Outcome{Result: []byte(`{}`)})), []string{"scheduled leave at 03 14:00"}, []string{"expiry"})
	for _, step := range []struct {
		name, wish      string
		armed, disarmed []string
	}{
		{"unchanged", `{}`, nil, nil},
		{"later", inHours(60), []string{"scheduled leave at 04 00:00"}, []string{"departure"}},
		{"in the past", inHours(-3), []string{"scheduled leave at 01 12:00"}, []string{"departure"}}, // now
		{"still in the past", `{}`, nil, nil},
		{"on another day in the past", inHours(-99), []string{"scheduled leave at 01 12:00"}, []string{"departure"}},
	} {
		_, d := l.decide(l.command("edit", step.wish))
		t.Run(step.name, func(t *testing.T) { wantTimers(t, l, l.must(nil, d), step.armed, step.disarmed) })
	}
}

func TestTheZeroTimeIsNever(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	if d := l.worked("book", `{}`); len(d.Commands) > 0 {
		t.Errorf("armed %q", plans(d))
	}
	_, d := l.decide(l.command("edit", inHours(1)))
	wantTimers(t, l, d, []string{"scheduled leave at 01 13:00"}, []string{"departure"})
	armed := anyTrip(booked, `{"leaves":"2026-03-02T00:00:00Z"}`)
	l.inst = armed
	c := change{p: l.prepare(l.command("edit", `{}`)), w: l.w, inst: armed, now: noon, name: "edit",
		out: workflow.Outcome{To: booked, Data: []byte(`{}`)}} // an action that forgets the time
	wantTimers(t, l, c.decide(), nil, []string{"departure"})
}

func TestTimer_FiresInPlace(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	_, armed := (&life{t: t, w: l.w, now: noon}).decide(transitions.Command{Workflow: "trip", Transition: "plan", Key: "k",
		Payload: []byte(`{}`)})
	nag := armed.Commands[0].flight()
	l.now = noon.Add(time.Hour)
	p, err := nag.Due(l.w)
	require.NoError(t, err)
	d := l.must(p, Decide(p, l.w, l.inst, l.now))
	wantTimers(t, l, d, nil, nil)
	assert.Truef(t, d.Entry.Transition == "nag" && d.Entry.Actor == "pawl:timer" && d.Status == transitions.Succeeded && d.Code == 200,
		"it did %+v", d.Entry)
}

// A timer that leaves the states lists itself among the void timers; its own command is locked by the deciding node and excluded by its
// key.
func TestATimerThatFiresAndLeavesEndsTheOthers(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	_, armed := (&life{t: t, w: l.w, now: noon}).decide(transitions.Command{Workflow: "trip", Transition: "plan", Key: "k",
		Payload: []byte(`{}`)})
	expiry := armed.Commands[1].flight()
	l.now = noon.Add(24 * time.Hour)
	p, err := expiry.Due(l.w)
	require.NoError(t, err)
	d := Decide(p, l.w, l.inst, l.now)
	wantTimers(t, l, d, nil, []string{"nagging", "expiry"})
	assert.Truef(t, d.After.State == over && p.Scope == timerOf(l, "expiry") && p.Key == "1" && p.Resumed.Attempt == 1,
		"got %+v by %s %s", d.After, p.Scope, p.Key)
	if again := Decide(p, l.w, d.After, l.now); again.Err == nil || again.Err.Code != workflow.IllegalTransition {
		t.Errorf("fired twice: %+v", again)
	}
}

func TestTimer_FailingFunction(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		data, wish string
		want       workflow.Code
	}{
		"it panics":                     {`{}`, `{"text":"panic"}`, workflow.Internal},
		"it panics on the old data":     {`{"log":["edit panic"]}`, `{}`, workflow.Internal},
		"it gives a year past all":      {`{}`, `{"leaves":"9999-12-31T23:59:59-01:00"}`, workflow.Internal},
		"the data are of another build": {`{"number":"many"}`, `{}`, workflow.NotOnThisNode},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.inst = anyTrip(booked, tt.data)
			_, d := l.decide(l.command("edit", tt.wish))
			wantCode(t, d.Err, tt.want)
			checkRefusal(t, d, l.inst)
		})
	}
}
