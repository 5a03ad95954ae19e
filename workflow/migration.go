package workflow

import (
	"fmt"
	"reflect"
	"time"
)

// Plan is a way for instances of another version of a workflow into a version with data D, made
// by [FromVersion]. Its methods add to the declaration and return it.
type Plan[D any] interface {
	plan() *plan
	dataType(D) // ties the plan to the data, as Part does
}

// Migrate declares from which other versions instances that are under way can be taken to this one. A plan
// is checked where both versions are given: what of the other version it leaves open is refused then, all together.
// It is no part of what the definition says.
func (d *Definition[D]) Migrate(plans ...Plan[D]) *Definition[D] {
	d.plans = append(d.plans, plans...)
	return d
}

// FromVersionPlan is the plan that FromVersion begins.
type FromVersionPlan[O, D any] struct {
	spec plan
	data func(O) (D, error)
	at   map[string]func(now time.Time, data D) time.Time
}

// FromVersion begins the plan by which instances come from another version of the workflow, older or newer, with data O.
// The function makes the new data of the old. It is pure; its error refuses the instance, which stays as it is. nil
// leaves the data as it is: for a D that can read all that an O has.
//
// What has one name in both versions and means the same there maps by itself: states that are ordinary in both, timers that
// run as long and do the same. An instance that waits for an activity comes when that has ended. Instances that have ended
// stay. All else the plan has to say.
func FromVersion[O, D any](version int, data func(old O) (D, error)) *FromVersionPlan[O, D] {
	return &FromVersionPlan[O, D]{data: data, at: map[string]func(time.Time, D) time.Time{},
		spec: plan{from: version, states: map[State]State{}, names: map[string]string{}, timers: map[string]timerRule{}}}
}

// State says in which state of the new version an instance goes on that is in a state of the old one.
func (p *FromVersionPlan[O, D]) State(old, now State) *FromVersionPlan[O, D] {
	if _, twice := p.spec.states[old]; twice {
		p.spec.mistakes = append(p.spec.mistakes, fmt.Sprintf("maps state %q twice", old))
	}
	p.spec.states[old] = now
	return p
}

// Transition says by which name the new version asks who did a transition of the old one that it does not have; see [Transition.NotBy].
func (p *FromVersionPlan[O, D]) Transition(old, now string) *FromVersionPlan[O, D] {
	if _, twice := p.spec.names[old]; twice {
		p.spec.mistakes = append(p.spec.mistakes, fmt.Sprintf("maps transition %q twice", old))
	}
	p.spec.names[old] = now
	return p
}

// Carry lets instances come while the named activities are under way: what is in flight goes on, and its outcome is taken
// by the activity of that name in the new version. Both must have the same payload and result.
func (p *FromVersionPlan[O, D]) Carry(activities ...string) *FromVersionPlan[O, D] {
	p.spec.carried = append(p.spec.carried, activities...)
	return p
}

// KeepTimer lets a timer that both versions have fire when it was to fire.
func (p *FromVersionPlan[O, D]) KeepTimer(name string) *FromVersionPlan[O, D] {
	return p.timer(name, keepTimer)
}

// RestartTimer starts a timer that both versions have as if its states were entered with the migration.
func (p *FromVersionPlan[O, D]) RestartTimer(name string) *FromVersionPlan[O, D] {
	return p.timer(name, restartTimer)
}

// SetTimer says when a timer that both versions have fires, from the time of the migration and the new data. The zero
// time is never; one that has passed is now, which a dry run tells.
func (p *FromVersionPlan[O, D]) SetTimer(name string, at func(now time.Time, data D) time.Time) *FromVersionPlan[O, D] {
	if at == nil {
		p.spec.mistakes = append(p.spec.mistakes, fmt.Sprintf("sets timer %q by no function", name))
	}
	p.at[name] = at
	return p.timer(name, setTimer)
}

// DropTimer ends a timer of the old version that does not run in the state where the instance goes on.
func (p *FromVersionPlan[O, D]) DropTimer(name string) *FromVersionPlan[O, D] {
	return p.timer(name, dropTimer)
}

// Forget says that nothing follows from what instances did by the named transitions under the old version, where that did not keep
// it and the new one asks for it, or where the new one does not have them: nobody is excluded for it (see [Transition.NotBy]), and no
// failure undoes it (see [Activity.Undoes]).
func (p *FromVersionPlan[O, D]) Forget(transitions ...string) *FromVersionPlan[O, D] {
	p.spec.forgotten = append(p.spec.forgotten, transitions...)
	return p
}

func (p *FromVersionPlan[O, D]) timer(name string, rule timerRule) *FromVersionPlan[O, D] {
	if _, twice := p.spec.timers[name]; twice {
		p.spec.mistakes = append(p.spec.mistakes, fmt.Sprintf("says twice what becomes of timer %q", name))
	}
	p.spec.timers[name] = rule
	return p
}

// plan is a Plan with its types erased.
type plan struct {
	from      int
	states    map[State]State
	names     map[string]string // of transitions
	carried   []string
	forgotten []string
	timers    map[string]timerRule
	mistakes  []string
	old       reflect.Type // the data that it is declared for
	same      bool         // the data stays as it is
	data      func(old []byte, gone map[string]bool) ([]byte, error)
	at        func(timer string, now time.Time, data []byte) (time.Time, error)
}

type timerRule int

const (
	keepTimer timerRule = iota + 1
	restartTimer
	setTimer
	dropTimer
)

func (p *FromVersionPlan[O, D]) dataType(D) {}

// plan freezes the declaration.
func (p *FromVersionPlan[O, D]) plan() *plan {
	s := p.spec
	s.old, s.same = reflect.TypeFor[O](), p.data == nil
	s.data = func(data []byte, gone map[string]bool) ([]byte, error) {
		if p.data == nil {
			return unchanged[O, D](data, gone)
		}
		return convert(data, gone, p.data)
	}
	s.at = func(timer string, now time.Time, data []byte) (time.Time, error) {
		d, err := decodeData[D](data)
		if err != nil {
			return time.Time{}, err
		}
		return p.at[timer](now, d), nil
	}
	return &s
}
