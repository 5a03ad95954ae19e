package schedule

import (
	"errors"
	"slices"
	"time"
)

// Policy says what happens to runs that are late or overlap.
type Policy struct {
	// Missed says what happens to runs that no node could submit within a minute: "skip" leaves them out, "latest" submits the newest,
	// "all" submits up to MaxMissed, the newest. Defaults to "latest". "all" requires that Overlap is "queue_all" or "allow".
	Missed string `json:"missed,omitzero" validate:"omitempty,oneof=skip latest all"`

	// MaxMissed is the maximum number of missed runs that "all" submits. Defaults to 100.
	MaxMissed int `json:"max_missed,omitzero" validate:"gte=0,lte=1000"`

	// Window is the age in seconds after which a missed run is left out. Defaults to 86400, a day.
	Window int64 `json:"window_seconds,omitzero" validate:"gte=0,lte=31536000"`

	// Overlap says what happens to a run that is due while the one before is open: its instance is open, or its command is in flight.
	// "skip" leaves it out, "queue_one" and "queue_all" wait for the end and then submit the newest or all of them, "cancel" cancels the
	// one before, "allow" submits it. Defaults to "skip".
	Overlap string `json:"overlap,omitzero" validate:"omitempty,oneof=skip queue_one queue_all cancel allow"`

	// Cancel is the transition that ends an open instance, for Overlap "cancel". Without it only a command in flight is cancelled.
	Cancel string `json:"cancel,omitzero" validate:"max=255"`
}

// Values of Policy.Overlap and Policy.Missed that the engine distinguishes.
const (
	overlapAllow    = "allow"
	overlapCancel   = "cancel"
	overlapQueueOne = "queue_one"
	overlapQueueAll = "queue_all"
	missedSkip      = "skip"
	missedAll       = "all"
)

// late is the delay, in addition to the jitter, after which a run counts as missed.
const late = time.Minute

// maxQueued bounds the queue of a schedule. Older runs are left out.
const maxQueued = 1000

func (p Policy) check() error {
	if p.Missed == missedAll && p.Overlap != overlapQueueAll && p.Overlap != overlapAllow {
		return errors.New(`missed "all" needs the overlap "queue_all" or "allow"`)
	}
	if p.Cancel != "" && p.Overlap != overlapCancel {
		return errors.New(`a cancel transition needs the overlap "cancel"`)
	}
	return nil
}

// CanOverlap reports whether runs are independent of the one before.
func (p Policy) CanOverlap() bool { return p.Overlap == overlapAllow }

// State is the progress of a schedule.
type State struct {
	Last time.Time // nominal time of the newest run that was submitted or left out
	Held time.Time // time of the newest decision that let runs wait for the one before; zero if none wait
}

// Step is what to do now.
type Step struct {
	Run    []time.Time // nominal times to submit, oldest first
	Cancel bool        // cancel the run before first
	Wait   bool        // runs wait for the end of the one before

	// Nominal times of the first and the last run that are left out, and the reason: "missed" or "overlap". Zero if all are submitted.
	SkippedFrom, SkippedTo time.Time
	Skipped                string

	State State     // after the step
	Next  time.Time // nominal time of the next run; zero if there is none
}

// Step decides which runs of the named schedule are submitted. running reports whether the run before is open.
func (t *Times) Step(p Policy, name string, s State, running bool, now time.Time) Step {
	step := Step{State: s}
	if ready := t.ready(name, s.Last, now); !ready.IsZero() {
		step.State = State{Last: ready}
		step.Run = t.due(p, name, s, ready, now)
		switch {
		case len(step.Run) == 0:
			step.skip("missed", t.Next(s.Last), ready)
		case p.CanOverlap():
			step.skip("missed", t.Next(s.Last), t.Last(s.Last, step.Run[0].Add(-1)))
		default:
			t.stepAlone(&step, p, s, running, now)
		}
	}
	step.Next = t.Next(step.State.Last)
	return step
}

// stepAlone reduces the runs of a step to one, or none while the run before is open.
func (t *Times) stepAlone(step *Step, p Policy, s State, running bool, now time.Time) {
	run, queues := step.Run[len(step.Run)-1], p.Overlap == overlapQueueOne || p.Overlap == overlapQueueAll
	switch {
	case running && queues:
		step.Run, step.Wait, step.State = nil, true, State{Last: s.Last, Held: now}
		return
	case running && p.Overlap != overlapCancel:
		step.Run = nil
		step.skip("overlap", t.Next(s.Last), step.State.Last)
		return
	case p.Overlap == overlapQueueAll:
		run, step.Wait = step.Run[0], len(step.Run) > 1
		if step.Wait {
			step.State = State{Last: run, Held: now}
		}
	}
	step.Run, step.Cancel = []time.Time{run}, running
	step.skip("missed", t.Next(s.Last), t.Last(s.Last, run.Add(-1)))
}

func (s *Step) skip(reason string, from, to time.Time) {
	if !from.IsZero() && !to.IsZero() && !to.Before(from) {
		s.Skipped, s.SkippedFrom, s.SkippedTo = reason, from, to
	}
}

// ready returns the newest nominal time after the given one that is due, with all before it; zero if none is.
func (t *Times) ready(name string, after, now time.Time) time.Time {
	sure := later(after, now.Add(-time.Duration(t.spec.Jitter)*time.Second))
	ready := t.Last(after, sure)
	for next := t.Next(sure); !next.IsZero() && !next.Add(t.Delay(name, next)).After(now); next = t.Next(next) {
		ready = next
	}
	return ready
}

// due returns the runs up to ready that are submitted: those that waited, those that were missed, and those on time.
func (t *Times) due(p Policy, name string, s State, ready, now time.Time) []time.Time {
	var queued, fresh []time.Time
	after := s.Last
	if s.Held.After(after) {
		most := 1
		if p.Overlap == overlapQueueAll {
			most = maxQueued
		}
		after = s.Held
		queued = t.newest(s.Last, earlier(s.Held, ready), most)
	}
	onTime := later(after, now.Add(-late-time.Duration(t.spec.Jitter)*time.Second))
	for next := t.Next(onTime); !next.IsZero() && !next.After(ready); next = t.Next(next) {
		fresh = append(fresh, next)
	}
	return slices.Concat(queued, t.missed(p, after, earlier(onTime, ready), now, len(fresh)+len(queued) > 0), fresh)
}

// missed returns the missed runs that are submitted. newer reports that there are newer runs.
func (t *Times) missed(p Policy, after, until, now time.Time, newer bool) []time.Time {
	most, window := 1, time.Duration(p.Window)*time.Second
	if p.Window == 0 {
		window = 24 * time.Hour
	}
	switch {
	case p.Missed == missedSkip || p.Missed != missedAll && newer:
		return nil
	case p.Missed == missedAll && p.MaxMissed == 0:
		most = 100
	case p.Missed == missedAll:
		most = p.MaxMissed
	}
	return t.newest(later(after, now.Add(-window-1)), until, most)
}

// newest returns the newest nominal times, at most so many, after one time and not after another.
func (t *Times) newest(after, until time.Time, most int) (list []time.Time) {
	for back := 2 * time.Second; after.Before(until); back *= 8 {
		from, whole := until.Add(-back), false
		if back > maxLook || !from.After(after) {
			from, whole = after, true
		}
		list = list[:0]
		for next := t.Next(from); !next.IsZero() && !next.After(until); next = t.Next(next) {
			if list = append(list, next); len(list) > 2*most {
				list = slices.Delete(list, 0, most)
			}
		}
		if whole || len(list) >= most {
			break
		}
	}
	return list[max(0, len(list)-most):]
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
