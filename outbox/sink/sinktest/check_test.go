package sinktest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// twoInstances returns events of the instances a, b, a, b.
func twoInstances() []transitions.Logged {
	log, a, b := newLog(tenant), uuid.New(), uuid.New()
	var events []transitions.Logged
	for _, id := range []uuid.UUID{a, b} {
		events = log.transition(events, id, 0)
	}
	for _, id := range []uuid.UUID{a, b} {
		events = append(events, log.transition(nil, id, 0)[0])
	}
	return events
}

// The suite detects violations.
func TestInvalidFailuresAreDetected(t *testing.T) {
	no := func(kind sink.Kind) *sink.Failure { return sink.Fail(kind, nil, "no") }
	tests := []struct {
		name     string
		failures []*sink.Failure
		want     string // part of the error; "": no error
	}{
		{"all delivered", nil, ""},
		{"all delivered, at length", make([]*sink.Failure, 4), ""},
		{"one instance behind", []*sink.Failure{no(sink.Temporary), nil, no(sink.Held), nil}, ""},
		{"the receiver is away", []*sink.Failure{no(sink.Unavailable), no(sink.Held), no(sink.Held), no(sink.Held)}, ""},
		{"too few", []*sink.Failure{no(sink.Temporary)}, "1 failures for 4 events"},
		{"overtaken", []*sink.Failure{no(sink.Temporary), nil, nil, nil}, "event 2 is delivered, but an earlier one"},
		{"tried out of turn", []*sink.Failure{no(sink.Permanent), nil, no(sink.Temporary), nil}, "event 2 was tried"},
		{"unknown kind", []*sink.Failure{no("odd"), nil, no(sink.Held), nil}, `the kind "odd"`},
		{"no message", []*sink.Failure{nil, nil, nil, {Kind: sink.Temporary}}, "message that is empty"},
		{"a message that cannot be stored", []*sink.Failure{nil, nil, nil, {Kind: sink.Temporary, Message: "\x00"}}, "cannot be stored"},
	}
	for _, tt := range tests {
		err := checkFailures(twoInstances(), tt.failures)
		assert.Truef(t, (tt.want != "" || err == nil) && (tt.want == "" || err != nil && strings.Contains(err.Error(), tt.want)),
			"%s: %v, want %q", tt.name, err, tt.want)
	}
}

func TestWrongArrivalsAreDetected(t *testing.T) {
	events := twoInstances()
	message := func(i int) Message { return Message{sink.MessageID(&events[i].Event), events[i].CloudEvent} }
	messages := func(indexes ...int) []Message {
		var list []Message
		for _, i := range indexes {
			list = append(list, message(i))
		}
		return list
	}
	tests := []struct {
		name     string
		received []Message
		arrived  int
		want     string
	}{
		{"nothing", nil, 0, ""},
		{"everything", messages(0, 1, 2, 3), 4, ""},
		{"another order across instances", messages(1, 3, 0, 2), 4, ""},
		{"a repetition", messages(0, 1, 2, 0, 3), 4, ""},
		{"a part", messages(1), 1, ""},
		{"out of order", messages(2, 0), 0, "event 2"},
		{"a gap", messages(2), 0, "event 2"},
		{"changed", []Message{{"x", []byte("{}")}}, 0, "not an event of the test"},
		{"two with one id", []Message{message(0), {message(0).ID, events[1].CloudEvent}}, 0, "events 0 and 1 have the same id"},
		{"one with two ids", []Message{message(0), {"other", events[0].CloudEvent}}, 0, "event 0 (id \"other\")"},
		{"no id", []Message{{"", events[0].CloudEvent}}, 0, "event 0 has no id"},
	}
	for _, tt := range tests {
		arrived, err := checkReceived(events, tt.received)
		assert.Truef(t, (tt.want != "" || err == nil) && (tt.want == "" || err != nil && strings.Contains(err.Error(), tt.want)),
			"%s: %v, want %q", tt.name, err, tt.want)
		assert.Equalf(t, tt.arrived, arrived, "%s arrived", tt.name)
	}
}

func TestChangedEventsAreDetected(t *testing.T) {
	events := twoInstances()
	assert.NoError(t, checkUnchanged(events))
	events[1].CloudEvent = slices.Concat(events[1].CloudEvent, []byte(" "))
	assert.Error(t, checkUnchanged(events), "a change is not found")
}
