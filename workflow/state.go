package workflow

import (
	"iter"
	"slices"
	"strings"
)

// State names a place where an instance can be. Declare states as constants:
//
//	const Placed workflow.State = "placed"
//
// The state of an instance whose workflow has composite states ([Definition.Regions], [Definition.Inside]) is a text of several: the
// active states inside their composite states, in the order of the definition, and what [Last] returns to. For example
//
//	checking(documents_wanted,scoring)
//	suspended;checking=documents_wanted,review
type State string

// Active lists the active states, composite ones before what is inside them. Without composite states it is the state alone.
func (s State) Active() []State { return slices.Collect(s.active()) }

// Has reports whether a state is active in the state of an instance.
func (s State) Has(active State) bool {
	if s == active {
		return true
	}
	for a := range s.active() {
		if a == active {
			return true
		}
	}
	return false
}

func (s State) active() iter.Seq[State] {
	text, _, _ := strings.Cut(string(s), ";")
	return func(yield func(State) bool) {
		for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '(' || r == ')' || r == ',' }) {
			if !yield(State(name)) {
				return
			}
		}
	}
}

// Stay as a target means the state that the instance is in: the transition
// leaves the data changed and the state as it was. Of an activity it is the state in
// which its command was accepted.
const Stay State = "(stay)"

// From lists the states that a transition may leave. A group of states is an
// ordinary slice: From(open...).
func From(states ...State) []State { return states }
