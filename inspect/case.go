package inspect

import "github.com/pawlhq/pawl/transitions"

// MaxTimeline is how many transitions a Case has at most.
const MaxTimeline = 50

// Case is the whole of one instance, as an operator wants to see it. Its parts are
// read one after the other: what changes meanwhile may be in one and not in another.
type Case struct {
	View
	InFlight []transitions.Record // its command in flight, and the undos that are; without their requests
	Earlier  int64                // transitions before those of the timeline
	Timeline []transitions.Entry  // the newest ones, in order
	Chain    Verification         // of its audit rows
}
