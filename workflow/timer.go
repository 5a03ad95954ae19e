package workflow

import (
	"slices"
	"time"
)

// Timer makes an instance do a transition by itself, at a time. It is armed when
// the instance enters one of the states from outside of them, and disarmed when
// it leaves them all.
type Timer struct {
	Name  string
	In    []State
	After time.Duration // since the states were entered; 0 where the time is taken from the data
	Do    string        // a transition that takes an empty payload
	at    func(data []byte) (time.Time, error)
}

// FromData reports whether the time is taken from the data.
func (t *Timer) FromData() bool { return t.at != nil }

// Runs reports whether the timer runs in the state of an instance.
func (t *Timer) Runs(in State) bool { return slices.ContainsFunc(t.In, in.Has) }

// Due is when the timer fires, given when the states were entered and the data.
// The zero time is never. Its error is an *Error for data that do not fit the
// workflow. It does not recover panics.
func (t *Timer) Due(entered time.Time, data []byte) (time.Time, error) {
	if t.at == nil {
		return entered.Add(t.After), nil
	}
	return t.at(data)
}

// timer is a Timer as it is being declared.
type timer[D any] struct {
	Timer
	fromData bool
	time     func(D) time.Time
}

// After declares a timer: an instance that has been in the states for so long
// does the named transition, with an empty payload and every role, unless it has
// left them all before. Moving from one of the states to another one does not
// start the time anew. The name is unique in the workflow.
func (d *Definition[D]) After(name string, in []State, after time.Duration, do string) *Definition[D] {
	d.timers = append(d.timers, timer[D]{Timer: Timer{Name: name, In: in, After: after, Do: do}})
	return d
}

// At declares a timer as [Definition.After] does, whose time is taken from the
// data: when the states are entered, and again after every transition that stays
// in them. A time that has passed is now; the zero time is never.
func (d *Definition[D]) At(name string, in []State, at func(data D) time.Time, do string) *Definition[D] {
	d.timers = append(d.timers, timer[D]{Timer: Timer{Name: name, In: in, Do: do}, fromData: true, time: at})
	return d
}

// erase freezes the timer.
func (t timer[D]) erase() *Timer {
	erased := t.Timer
	erased.In = slices.Clone(t.In)
	if t.fromData {
		erased.at = func(data []byte) (time.Time, error) {
			d, err := decodeData[D](data)
			if err != nil {
				return time.Time{}, err
			}
			return t.time(d), nil
		}
	}
	return &erased
}
