package workflow

// State names a place where an instance can be. Declare states as constants:
//
//	const Placed workflow.State = "placed"
type State string

// From lists the states that a transition may leave. A group of states is an
// ordinary slice: From(open...).
func From(states ...State) []State { return states }
