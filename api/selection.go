package api

import (
	"iter"

	"github.com/pawlhq/pawl/transitions"
)

// selection is what a reader of the log wants to see.
type selection struct{ transitions.EventFilter }

// from yields the selected events, each with whether another selected one of
// the same transition follows. A reader must not take the position of such an
// event for the place to resume after: the rest of the transition would be lost.
func (s *selection) from(events []transitions.Logged) iter.Seq2[*transitions.Logged, bool] {
	return func(yield func(*transitions.Logged, bool) bool) {
		var held *transitions.Logged
		for i := range events {
			e := &events[i]
			if !s.Takes(&e.Event) {
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
func (a *API) selectionOf(r *request) (selection, error) {
	s := selection{transitions.EventFilter{Workflow: r.text("workflow"), Instance: r.id("instance"), BusinessKey: r.text("business_key"),
		Attributes: r.attributes(), Types: r.texts("type"), States: r.states()}}
	return s, a.checkSelection(&s)
}

// checkSelection refuses what no event can have, and, as lists do, a workflow that this
// node does not know. Errors: InvalidRequest, WorkflowNotFound.
func (a *API) checkSelection(s *selection) error {
	if s.Workflow == "" {
		return s.Check(nil)
	}
	if _, err := a.engine.Workflow(s.Workflow, 0); err != nil {
		return err
	}
	return s.Check(a.engine.Versions(s.Workflow))
}
