package sinktest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// kinds are all that a failure may be.
var kinds = []sink.Kind{sink.Temporary, sink.Permanent, sink.Unavailable, sink.Gone, sink.Held}

// checkFailures says whether a sink's answer is one that the contract allows,
// for events that are all of one tenant.
func checkFailures(events []transitions.Logged, failures []*sink.Failure) error {
	if failures == nil {
		return nil
	}
	if len(failures) != len(events) {
		return fmt.Errorf("%d failures for %d events", len(failures), len(events))
	}
	behind := make(map[uuid.UUID]bool)
	whole := slices.ContainsFunc(failures, func(f *sink.Failure) bool { return f != nil && f.Kind.Whole() })
	for i, f := range failures {
		instance := events[i].Instance
		switch {
		case f == nil && behind[instance]:
			return fmt.Errorf("event %d is delivered, but an earlier one of its instance is not", i)
		case f == nil:
			continue
		case !slices.Contains(kinds, f.Kind):
			return fmt.Errorf("event %d failed with the kind %q", i, f.Kind)
		case f.Message == "" || transitions.TextProblem(f.Message, sink.MaxMessage) != "":
			return fmt.Errorf("event %d failed with a message that is empty or cannot be stored: %q", i, f.Message)
		case f.Kind != sink.Held && behind[instance] && !whole:
			return fmt.Errorf("event %d was tried (%w), though an earlier one of its instance had failed", i, f)
		}
		behind[instance] = true
	}
	return nil
}

// checkReceived says whether what was received is some of the events, unchanged,
// each instance's from its first on without a gap and in order. It returns how
// many of the events have arrived; repetitions do not count.
func checkReceived(events []transitions.Logged, received []Message) (arrived int, err error) {
	byBody := make(map[string]int, len(events))
	queues := make(map[uuid.UUID][]int) // what is still to come, by instance
	for i := range events {
		byBody[string(events[i].CloudEvent)] = i
		queues[events[i].Instance] = append(queues[events[i].Instance], i)
	}
	ids := make(map[string]int, len(events))
	for n, m := range received {
		i, known := byBody[string(m.Body)]
		if !known {
			return 0, fmt.Errorf("message %d (%s) is none of the events: %.200q", n, m.ID, m.Body)
		}
		if other, used := ids[m.ID]; used {
			if other != i {
				return 0, fmt.Errorf("events %d and %d have the same id %q", other, i, m.ID)
			}
			continue
		}
		if m.ID == "" {
			return 0, fmt.Errorf("event %d has no id", i)
		}
		queue := queues[events[i].Instance]
		if len(queue) == 0 || queue[0] != i {
			return 0, fmt.Errorf("event %d (id %q) came when %v of its instance were to come: out of order, or again with another id",
				i, m.ID, queue)
		}
		queues[events[i].Instance] = queue[1:]
		ids[m.ID] = i
	}
	return len(ids), nil
}

// checkUnchanged says whether the events are as they were rendered.
func checkUnchanged(events []transitions.Logged) error {
	for i := range events {
		if !bytes.Equal(events[i].CloudEvent, events[i].AppendCloudEvent(nil)) {
			return fmt.Errorf("event %d was changed by the sink", i)
		}
	}
	return nil
}

// all says whether every event was delivered.
func all(failures []*sink.Failure) error {
	var errs []error
	for i, f := range failures {
		if f != nil {
			errs = append(errs, fmt.Errorf("event %d: %w", i, f))
		}
	}
	return errors.Join(errs...)
}
