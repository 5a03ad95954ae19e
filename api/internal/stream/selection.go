package stream

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

// Check refuses what no event can have, and, as lists do, a workflow that this
// node does not know. Errors: InvalidRequest, WorkflowNotFound.
func (srv *Server) Check(f *transitions.EventFilter) error {
	if f.Workflow == "" {
		return f.Check(nil)
	}
	if _, err := srv.engine.Workflow(f.Workflow, 0); err != nil {
		return err
	}
	return f.Check(srv.engine.Versions(f.Workflow))
}
