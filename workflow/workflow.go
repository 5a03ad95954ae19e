package workflow

import (
	"reflect"
	"slices"
	"strings"
)

// Workflow is a checked definition with its types erased. It is immutable and
// safe for concurrent use.
type Workflow struct {
	Name       string
	Version    int
	Hash       string // hex SHA-256 of what the definition says, not of how it is coded; see docs/decisions/0005
	Steps      []*Step
	States     []State // in order of first mention
	Finals     []State
	Roles      []string
	Attributes []string
	Timers     []*Timer
	Horizons   Horizons // as declared; see Horizons.Resolve
	MaxData    int      // of an instance, in bytes of JSON

	byName      map[string][]*Step
	final       map[State]bool
	watched     map[string]bool
	watchedLast map[string]bool
	rounds      []round
	attrs       func(data []byte) (map[string]string, error)
	members     map[string]string // of the data; see Members
	gone        map[string]bool   // see Definition.DataChanged
	data        reflect.Type
	correct     func(data, change []byte) ([]byte, error)
	plans       map[int]*plan                 // for instances of other versions; see MigrationOf
	regions     map[State][]RegionDescription // of composite states
	automatic   bool                          // there are automatic transitions
	tree        *stateTree                    // nil where no state is composite
}

// Regions returns the regions of a composite state, or one without a name for states that exclude each other. It is empty for others.
func (w *Workflow) Regions(s State) []RegionDescription { return w.regions[s] }

// IsFinal reports whether an instance ends in the state.
func (w *Workflow) IsFinal(s State) bool {
	top, _, _ := strings.Cut(string(s), ";")
	return w.final[State(top)]
}

// Named returns every step with the name: a start, one per group of states that
// they leave, or both; none for an unknown name. All share one payload type.
func (w *Workflow) Named(transition string) []*Step { return w.byName[transition] }

// Creating returns the step of that name that creates an instance, or nil.
func (w *Workflow) Creating(transition string) *Step {
	for _, s := range w.byName[transition] {
		if s.Start {
			return s
		}
	}
	return nil
}

// Moving returns the steps of that name that take an instance on: one per group of
// states that they leave.
func (w *Workflow) Moving(transition string) (list []*Step) {
	for _, s := range w.byName[transition] {
		if !s.Start {
			list = append(list, s)
		}
	}
	return list
}

// Activity returns the step that does the named activity for an instance that came
// from a state, or nil. Where there is one activity of the name, it is that one.
func (w *Workflow) Activity(name string, from State) *Step {
	only := activities(w.byName[name]) == 1
	for _, s := range w.byName[name] {
		if s.Work != nil && (only || s.Leaves(from)) {
			return s
		}
	}
	return nil
}

// Leaving returns the first step of that name that leaves an active state of an instance, or nil. Several can only leave
// several active states.
func (w *Workflow) Leaving(transition string, state State) *Step {
	if list := w.AllLeaving(transition, state); len(list) > 0 {
		return list[0]
	}
	return nil
}

// AllLeaving returns the steps of that name that leave active states of an instance, in order of declaration.
func (w *Workflow) AllLeaving(transition string, state State) (list []*Step) {
	around := w.within(state)
	for _, s := range w.byName[transition] {
		if s.Leaves(state) || w.tree != nil && slices.ContainsFunc(s.From, around.Has) {
			list = append(list, s)
		}
	}
	return list
}

// within adds the composite states around the name of a state inside them.
func (w *Workflow) within(state State) State {
	if w.tree == nil || strings.ContainsAny(string(state), "(;") {
		return state
	}
	return w.tree.text(w.tree.configuration(state))
}

// Allowed lists the names of the transitions for callers that leave an active state of an instance, in order of declaration.
func (w *Workflow) Allowed(state State) []string {
	var names []string
	for _, s := range w.Steps {
		if !s.Internal && !slices.Contains(names, s.Name) && slices.Contains(w.AllLeaving(s.Name, state), s) {
			names = append(names, s.Name)
		}
	}
	return names
}

// UndoneByOthers reports whether the failure of some activity undoes the named
// one, so that its effect must be remembered.
func (w *Workflow) UndoneByOthers(activity string) bool {
	return slices.ContainsFunc(w.Steps, func(s *Step) bool { return s.Work != nil && slices.Contains(s.Work.Undoes, activity) })
}

// TimersIn returns the timers that run in the state, in order of declaration.
func (w *Workflow) TimersIn(state State) []*Timer {
	var timers []*Timer
	for _, t := range w.Timers {
		if t.Runs(state) {
			timers = append(timers, t)
		}
	}
	return timers
}

// AttributesOf computes the declared attributes from an instance's data.
func (w *Workflow) AttributesOf(data []byte) (map[string]string, error) { return w.attrs(data) }

func (w *Workflow) collectStates() {
	add := func(states []State) {
		for _, s := range states {
			if s != Stay && !strings.HasPrefix(string(s), lastPrefix) && !slices.Contains(w.States, s) {
				w.States = append(w.States, s)
			}
		}
	}
	for _, s := range w.Steps {
		add(s.From)
		add(s.reaches())
	}
}
