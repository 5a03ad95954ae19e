package api

import (
	"iter"
	"slices"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// selection is what a reader of the log wants to see. An empty field selects
// everything. It is read-only once a reader has it.
type selection struct {
	workflow string
	instance uuid.UUID
	types    []string
	states   []workflow.State
}

func (s *selection) takes(e *transitions.Event) bool {
	return (s.workflow == "" || s.workflow == e.Workflow) &&
		(s.instance == uuid.Nil || s.instance == e.Instance) &&
		(len(s.types) == 0 || slices.Contains(s.types, e.Type)) &&
		(len(s.states) == 0 || slices.Contains(s.states, e.State))
}

// from yields the selected events, each with whether another selected one of
// the same transition follows. A reader must not take the position of such an
// event for the place to resume after: the rest of the transition would be lost.
func (s *selection) from(events []transitions.Logged) iter.Seq2[*transitions.Logged, bool] {
	return func(yield func(*transitions.Logged, bool) bool) {
		var held *transitions.Logged
		for i := range events {
			e := &events[i]
			if !s.takes(&e.Event) {
				continue
			}
			if held != nil && !yield(held, held.Position == e.Position) {
				return
			}
			held = e
		}
		if held != nil {
			yield(held, false)
		}
	}
}

// selectionOf reads a selection from the query of /v1/events.
func selectionOf(q query) (selection, error) {
	s := selection{workflow: q["workflow"]}
	if id, given := q["instance"]; given {
		var err error
		if s.instance, err = parseID(id); err != nil {
			return s, err
		}
	}
	if t := q["type"]; t != "" {
		s.types = []string{t}
	}
	if state := q["state"]; state != "" {
		s.states = []workflow.State{workflow.State(state)}
	}
	return s, nil
}
