package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/schedule"
)

// at returns a time of 1 January 2026.
func at(hour, minute int) time.Time { return time.Date(2026, 1, 1, hour, minute, 0, 0, time.UTC) }

func TestStep(t *testing.T) {
	hourly := schedule.Spec{Cron: "0 * * * *"}
	for name, c := range map[string]struct {
		policy  schedule.Policy
		state   schedule.State
		running bool
		now     time.Time
		want    schedule.Step
	}{
		"nothing is due": {now: at(9, 59), state: schedule.State{Last: at(9, 0)},
			want: schedule.Step{State: schedule.State{Last: at(9, 0)}, Next: at(10, 0)}},
		"on time": {now: at(10, 0), state: schedule.State{Last: at(9, 0)},
			want: schedule.Step{Run: []time.Time{at(10, 0)}, State: schedule.State{Last: at(10, 0)}, Next: at(11, 0)}},
		"missed: latest": {now: at(12, 30), state: schedule.State{Last: at(9, 0)},
			want: schedule.Step{Run: []time.Time{at(12, 0)}, State: schedule.State{Last: at(12, 0)}, Next: at(13, 0),
				Skipped: "missed", SkippedFrom: at(10, 0), SkippedTo: at(11, 0)}},
		"missed: latest, another on time": {now: at(12, 0), state: schedule.State{Last: at(9, 0)},
			want: schedule.Step{Run: []time.Time{at(12, 0)}, State: schedule.State{Last: at(12, 0)}, Next: at(13, 0),
				Skipped: "missed", SkippedFrom: at(10, 0), SkippedTo: at(11, 0)}},
		"missed: skip": {policy: schedule.Policy{Missed: "skip"}, now: at(12, 30), state: schedule.State{Last: at(9, 0)},
			want: schedule.Step{State: schedule.State{Last: at(12, 0)}, Next: at(13, 0), Skipped: "missed", SkippedFrom: at(10, 0),
				SkippedTo: at(12, 0)}},
		"missed: all": {policy: schedule.Policy{Missed: "all", Overlap: "allow"}, now: at(12, 0), state: schedule.State{Last: at(9, 0)},
			want: schedule.Step{Run: []time.Time{at(10, 0), at(11, 0), at(12, 0)}, State: schedule.State{Last: at(12, 0)}, Next: at(13, 0)}},
		"missed: all, bounded": {policy: schedule.Policy{Missed: "all", MaxMissed: 2, Overlap: "allow"}, now: at(12, 30),
			state: schedule.State{Last: at(9, 0)},
			want: schedule.Step{Run: []time.Time{at(11, 0), at(12, 0)}, State: schedule.State{Last: at(12, 0)}, Next: at(13, 0),
				Skipped: "missed", SkippedFrom: at(10, 0), SkippedTo: at(10, 0)}},
		"missed: all in the window": {policy: schedule.Policy{Missed: "all", Window: 3600, Overlap: "allow"}, now: at(12, 30),
			state: schedule.State{Last: at(9, 0)},
			want: schedule.Step{Run: []time.Time{at(12, 0)}, State: schedule.State{Last: at(12, 0)}, Next: at(13, 0),
				Skipped: "missed", SkippedFrom: at(10, 0), SkippedTo: at(11, 0)}},
		"overlap: skip": {running: true, now: at(10, 0), state: schedule.State{Last: at(9, 0)},
			want: schedule.Step{State: schedule.State{Last: at(10, 0)}, Next: at(11, 0), Skipped: "overlap", SkippedFrom: at(10, 0),
				SkippedTo: at(10, 0)}},
		"overlap: cancel": {policy: schedule.Policy{Overlap: "cancel"}, running: true, now: at(10, 0), state: schedule.State{Last: at(9, 0)},
			want: schedule.Step{Run: []time.Time{at(10, 0)}, Cancel: true, State: schedule.State{Last: at(10, 0)}, Next: at(11, 0)}},
		"overlap: allow": {policy: schedule.Policy{Overlap: "allow"}, running: true, now: at(10, 0), state: schedule.State{Last: at(9, 0)},
			want: schedule.Step{Run: []time.Time{at(10, 0)}, State: schedule.State{Last: at(10, 0)}, Next: at(11, 0)}},
		"queue: waits": {policy: schedule.Policy{Overlap: "queue_one"}, running: true, now: at(10, 0), state: schedule.State{Last: at(9, 0)},
			want: schedule.Step{Wait: true, State: schedule.State{Last: at(9, 0), Held: at(10, 0)}, Next: at(10, 0)}},
		"queue one: the newest": {policy: schedule.Policy{Overlap: "queue_one"}, now: at(12, 30),
			state: schedule.State{Last: at(9, 0), Held: at(12, 29)},
			want: schedule.Step{Run: []time.Time{at(12, 0)}, State: schedule.State{Last: at(12, 0)}, Next: at(13, 0),
				Skipped: "missed", SkippedFrom: at(10, 0), SkippedTo: at(11, 0)}},
		"queue all: one after the other": {policy: schedule.Policy{Overlap: "queue_all"}, now: at(12, 30),
			state: schedule.State{Last: at(9, 0), Held: at(12, 29)},
			want: schedule.Step{Run: []time.Time{at(10, 0)}, Wait: true, State: schedule.State{Last: at(10, 0), Held: at(12, 30)},
				Next: at(11, 0)}},
		"queue all: the last": {policy: schedule.Policy{Overlap: "queue_all"}, now: at(12, 30),
			state: schedule.State{Last: at(11, 0), Held: at(12, 29)},
			want:  schedule.Step{Run: []time.Time{at(12, 0)}, State: schedule.State{Last: at(12, 0)}, Next: at(13, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, times(t, hourly).Step(c.policy, "s", c.state, c.running, c.now))
		})
	}
}

// walk decides each minute, except in the outage, and returns the nominal times that ran.
func walk(t *testing.T, spec schedule.Spec, p schedule.Policy, from, until, down, up time.Time) (ran []time.Time, skips int) {
	t.Helper()
	c := times(t, spec)
	s := schedule.State{Last: from}
	for now := from; !now.After(until); now = now.Add(time.Minute) {
		if now.After(down) && now.Before(up) {
			continue
		}
		step := c.Step(p, "s", s, false, now)
		ran = append(ran, step.Run...)
		if step.Skipped != "" {
			skips++
		}
		s = step.State
	}
	return ran, skips
}

// Each of these was a bug of another scheduler.
func TestStep_BugsOfOthers(t *testing.T) {
	day := func(d, h, m int) time.Time { return time.Date(2026, 3, d, h, m, 0, 0, time.UTC) }
	t.Run("jitter without a following run", func(t *testing.T) {
		// Apache Airflow and others computed the next run from the delayed one, and lost it.
		ran, skips := walk(t, schedule.Spec{Cron: "*/10 * * * *", Jitter: 3600}, schedule.Policy{Overlap: "allow"},
			day(1, 0, 0), day(2, 2, 0), time.Time{}, time.Time{})
		require.GreaterOrEqual(t, len(ran), 144)
		for i, nominal := range ran {
			assert.Equal(t, day(1, 0, 10).Add(time.Duration(i)*10*time.Minute), nominal)
		}
		assert.Zero(t, skips)
	})
	t.Run("jitter that bypasses the gap check", func(t *testing.T) {
		ran, _ := walk(t, schedule.Spec{Cron: "30 2 * * *", Zone: "Europe/Berlin", Gap: "skip", Jitter: 7200}, schedule.Policy{},
			day(28, 12, 0), day(30, 12, 0), time.Time{}, time.Time{})
		assert.Equal(t, []time.Time{day(30, 0, 30)}, ran)
	})
	t.Run("fold that knew only the last tick", func(t *testing.T) {
		// Two times in the repeated hour: the second one is repeated as well.
		october := func(h, m int) time.Time { return time.Date(2026, 10, 25, h, m, 0, 0, time.UTC) }
		ran, _ := walk(t, schedule.Spec{Cron: "0,30 2 * * *", Zone: "Europe/Berlin"}, schedule.Policy{}, october(-6, 0), october(6, 0),
			time.Time{}, time.Time{})
		assert.Equal(t, []time.Time{october(0, 0), october(0, 30)}, ran)
	})
	t.Run("catch-up anchored at a capped tick", func(t *testing.T) {
		// After an outage that is longer than the window the runs stay on the grid.
		ran, skips := walk(t, schedule.Spec{Every: 7 * 3600, From: day(1, 0, 0)},
			schedule.Policy{Missed: "all", MaxMissed: 2, Window: 20 * 3600, Overlap: "allow"}, day(1, 1, 0), day(9, 0, 0), day(1, 8, 0), day(7, 5, 0))
		require.NotEmpty(t, ran)
		for _, nominal := range ran {
			assert.Zero(t, nominal.Sub(day(1, 0, 0))%(7*time.Hour))
		}
		assert.Equal(t, 1, skips)
		assert.Equal(t, []time.Time{day(1, 7, 0), day(6, 20, 0), day(7, 3, 0)}, ran[:3])
	})
	t.Run("no catch-up after SIGSTOP", func(t *testing.T) {
		// The process did not run for two hours, and did not notice.
		ran, _ := walk(t, schedule.Spec{Cron: "0 * * * *"}, schedule.Policy{Missed: "all", Overlap: "allow"}, day(1, 0, 0), day(1, 6, 30),
			day(1, 2, 30), day(1, 4, 45))
		assert.Len(t, ran, 6)
	})
	t.Run("a long outage of a frequent schedule", func(t *testing.T) {
		step := times(t, schedule.Spec{Every: 1}).Step(schedule.Policy{Missed: "all", MaxMissed: 10, Overlap: "allow"}, "s",
			schedule.State{Last: day(1, 0, 0).AddDate(-20, 0, 0)}, false, day(1, 0, 0))
		assert.Len(t, step.Run, 10+60) // the missed ones, and those of the last minute
		assert.Equal(t, day(1, 0, 0).Add(time.Second), step.Next)
	})
}
