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

var kinds = []sink.Kind{sink.Temporary, sink.Permanent, sink.Unavailable, sink.Gone, sink.Held}

// checkFailures validates the result of a Deliver with events of one tenant.
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

// checkReceived checks that the messages are unchanged events, each instance's in order and without
// gaps. It returns the number of distinct events.
func checkReceived(events []transitions.Logged, received []Message) (arrived int, err error) {
	byBody := make(map[string]int, len(events))
	queues := make(map[uuid.UUID][]int) // expected events by instance
	for i := range events {
		byBody[string(events[i].CloudEvent)] = i
		queues[events[i].Instance] = append(queues[events[i].Instance], i)
	}
	ids := make(map[string]int, len(events))
	for n, m := range received {
		i, known := byBody[string(m.Body)]
		if !known {
			return 0, fmt.Errorf("message %d (%s) is not an event of the test: %.200q", n, m.ID, m.Body)
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
			return 0, fmt.Errorf("event %d (id %q) arrived while %v of its instance were expected: wrong order or changed id",
				i, m.ID, queue)
		}
		queues[events[i].Instance] = queue[1:]
		ids[m.ID] = i
	}
	return len(ids), nil
}

func checkUnchanged(events []transitions.Logged) error {
	for i := range events {
		if !bytes.Equal(events[i].CloudEvent, events[i].AppendCloudEvent(nil)) {
			return fmt.Errorf("event %d was changed by the sink", i)
		}
	}
	return nil
}

func all(failures []*sink.Failure) error {
	var errs []error
	for i, f := range failures {
		if f != nil {
			errs = append(errs, fmt.Errorf("event %d: %w", i, f))
		}
	}
	return errors.Join(errs...)
}
