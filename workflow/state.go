package workflow

// State names a place where an instance can be. Declare states as constants:
//
//	const Placed workflow.State = "placed"
type State string

// Stay as a target means the state that the instance is in: the transition
// leaves the data changed and the state as it was. Of an activity it is the state in
// which its command was accepted.
const Stay State = "(stay)"

// From lists the states that a transition may leave. A group of states is an
// ordinary slice: From(open...).
func From(states ...State) []State { return states }
