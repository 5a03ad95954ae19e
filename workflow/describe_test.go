package workflow

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDescribeSaysWhatAnActivityAndATimerAre(t *testing.T) {
	undo := func(context.Context, *Attempt, calm, None, *int) error { return nil }
	check := func(context.Context, *Attempt, calm, None) (*int, error) { return nil, nil }
	w, err := Define("w", 1, Start("begin", "open", quiet[None]),
		sound("plain", "waiting", "closed"),
		sound("full", "working", "closed").Timeout(90*time.Second).Retry(Retry{Attempts: 3, First: time.Millisecond, Max: time.Hour}).
			Concurrency(4).Undo(undo).Check(check).Undoes("full").Settles("full").AskOperator(),
	).Final("closed").
		After("idle", From("open"), 36*time.Hour, "plain").
		At("until", From("open"), func(c calm) time.Time { return c.Until }, "full").
		Build()
	require.NoError(t, err)
	d := w.Describe()
	assert.Nilf(t, d.Transitions[0].Activity, "the start has an activity: %+v", d.Transitions[0])
	for i, want := range []ActivityDescription{
		{Via: "waiting", Failed: "open", Timeout: "1m0s", Retry: RetryDescription{10, "1s", "5m0s"}},
		{Via: "working", Failed: "open", Timeout: "1m30s", Retry: RetryDescription{3, "1ms", "1h0m0s"}, Concurrency: 4,
			Undo: true, Check: true, Undoes: []string{"full"}, Settles: []string{"full"}, AskOperator: true},
	} {
		assert.Equal(t, &want, d.Transitions[1+i].Activity, d.Transitions[1+i].Name)
	}
	want := []TimerDescription{
		{Name: "idle", In: From("open"), After: "36h0m0s", Do: "plain"},
		{Name: "until", In: From("open"), FromData: true, Do: "full"},
	}
	assert.Equal(t, want, d.Timers, "timers")
}

// Every word of an activity and of a timer counts.
func TestHashFollowsActivitiesAndTimers(t *testing.T) {
	type activity = Activity[calm, None, int]
	seen := map[string]int{}
	build := func(i int, change func(*activity), timers func(*Definition[calm])) {
		send := sound("send", "sending", "closed").Undo(func(context.Context, *Attempt, calm, None, *int) error { return nil })
		change(send)
		d := Define("w", 1, Start("begin", "open", quiet[None]), send,
			On("stop", From("open", "sending"), "closed", quiet[None]), On("look", From("open"), Stay, quiet[None])).Final("closed")
		timers(d)
		w, err := d.Build()
		require.NoError(t, err)
		other, taken := seen[w.Hash]
		assert.Falsef(t, taken, "definitions %d and %d have one hash", other, i)
		seen[w.Hash] = i
	}
	for i, change := range []func(*activity){
		func(*activity) {},
		func(a *activity) { a.Or("open") },
		func(a *activity) { a.OrElse("closed", failing) },
		func(a *activity) { a.Timeout(time.Second) },
		func(a *activity) { a.Retry(Retry{Attempts: 2}) },
		func(a *activity) { a.Retry(Retry{First: time.Minute}) },
		func(a *activity) { a.Retry(Retry{Max: time.Minute}) },
		func(a *activity) { a.Concurrency(1) },
		func(a *activity) { a.AskOperator() },
		func(a *activity) { a.Undoes("send") },
		func(a *activity) { a.Undoes("send").Settles("send") },
		func(a *activity) { a.undoing, a.spec.Undoable = nil, false },
		func(a *activity) {
			a.Check(func(context.Context, *Attempt, calm, None) (*int, error) { return nil, nil })
		},
	} {
		build(i, change, func(*Definition[calm]) {})
	}
	at := func(c calm) time.Time { return c.Until }
	for i, timers := range []func(*Definition[calm]){
		func(d *Definition[calm]) { d.After("t", From("open"), time.Hour, "stop") },
		func(d *Definition[calm]) { d.After("u", From("open"), time.Hour, "stop") },
		func(d *Definition[calm]) { d.After("t", From("open"), time.Minute, "stop") },
		func(d *Definition[calm]) { d.After("t", From("open"), time.Hour, "look") },
		func(d *Definition[calm]) { d.After("t", From("open", "sending"), time.Hour, "stop") },
		func(d *Definition[calm]) { d.After("t", From("open"), 0, "stop") },
		func(d *Definition[calm]) { d.At("t", From("open"), at, "stop") },
	} {
		build(100+i, func(*activity) {}, timers)
	}
}
