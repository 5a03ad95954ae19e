// Package sinktest tests that a sink fulfils the contract of [sink.Sink] with a real receiver. All
// sinks of Pawl pass it.
package sinktest

import (
	"context"
	"testing"

	"github.com/pawlhq/pawl/outbox/sink"
)

// Fixture is a new sink with an empty receiver. Optional capabilities may be nil; their tests are
// skipped.
type Fixture struct {
	Sink     sink.Sink
	Received func(t *testing.T) []Message // all received messages in order, including those of completed calls of Deliver
	Dedupes  bool                         // the receiver drops messages with a known id; Received does not return them
	// Limit is the size of the largest accepted CloudEvent in bytes, within 4 KiB; zero means no limit. Larger events
	// must fail as [sink.Permanent].
	Limit    int
	Down, Up func(t *testing.T)                 // stop the receiver and restart it with its data
	Stall    func(t *testing.T) (resume func()) // makes the receiver accept messages without responding until resume
}

// Message is a received message.
type Message struct {
	ID   string // identifies repetitions
	Body []byte // the CloudEvent
}

// Run tests a sink. open is called for each subtest and registers its cleanup with t, except
// closing the sink.
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
				ctx, cancel := context.WithTimeout(context.Background(), limit) // the test's context has ended
				defer cancel()
				if err := f.Sink.Close(ctx); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			test.run(t, f)
		})
	}
}
