// Package sinktest tries whether a sink keeps what [sink.Sink] promises, on a
// real receiver. Every sink of Pawl passes it; so should any other.
package sinktest

import (
	"context"
	"testing"

	"github.com/pawlhq/pawl/outbox/sink"
)

// Fixture is a new sink with a receiver that has no events yet. What a receiver
// cannot do is left out, and what needs it is skipped.
type Fixture struct {
	Sink sink.Sink

	// Received returns all that the receiver was given, in the order in which it
	// came. After a Deliver it includes what that has delivered.
	Received func(t *testing.T) []Message

	// Dedupes says that the receiver itself drops a message whose id it has: such
	// a repetition is not among those received.
	Dedupes bool

	// Limit is the size of the largest CloudEvent that the receiver takes, in
	// bytes, give or take 4 KiB; 0 stands for no limit. The sink has to know that
	// what is larger is refused for good.
	Limit int

	// Down makes the receiver go away, and Up come back with all that it had.
	Down, Up func(t *testing.T)

	// Stall makes the receiver take what it is given without an answer, until
	// resume is called.
	Stall func(t *testing.T) (resume func())
}

// Message is what a receiver was given.
type Message struct {
	ID   string // by which a receiver recognizes a repetition
	Body []byte // the CloudEvent
}

// Run tries a sink. open is called for each subtest; it registers with t what
// has to be cleaned up, but for closing the sink.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, f Fixture)
	}{
		{"EventsArriveUnchangedAndInOrder", eventsArrive},
		{"NothingToDeliver", nothingToDeliver},
		{"RepetitionsBearTheSameID", repetitions},
		{"ManyInstancesAtOnce", manyAtOnce},
		{"BigEventArrives", bigEvent},
		{"TooBigEventFailsAlone", tooBigEvent},
		{"EndedContextDeliversNothing", endedContext},
		{"StalledReceiverIsLeftWhenTheContextEnds", stalledReceiver},
		{"GoesOnAfterAnOutage", outage},
		{"ClosedSinkDeliversNothing", closed},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := open(t)
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), limit) // the test's own has ended
				defer cancel()
				if err := f.Sink.Close(ctx); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			test.run(t, f)
		})
	}
}
