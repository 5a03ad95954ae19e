package api_test

import (
	"testing"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A reader that is too late learns where the log goes on, before any stream
// begins.
func TestEventsThatRetentionHasRemovedAreGone(t *testing.T) {
	s := newServer(t)
	s.someEvents()
	if _, err := s.pool.Exec(t.Context(), "DELETE FROM pawl.outbox WHERE position <= 2"); err != nil {
		t.Fatal(err)
	}
	for _, headers := range [][]string{nil, {"Accept", "text/event-stream"}} {
		for _, after := range []string{"start", "1"} {
			a := s.get("/v1/events?after="+after, headers...)
			a.wantProblem(t, 410, workflow.EventsGone)
			if p := read[transitions.Problem](t, a); p.Position != 3 {
				t.Errorf("after %s: %+v", after, p)
			}
		}
	}
	s.get("/v1/events?after=2").want(t, 200)
}
