package definitions

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// named is a workflow of a name and a version, which lets replay be asked for.
func named(name string, version int, replay time.Duration) workflow.Source {
	nothing := func(*workflow.Call, *struct{}, struct{}) error { return nil }
	return workflow.Define(name, version, workflow.Start("begin", "done", nothing)).Final("done").Keep(workflow.Horizons{Replay: replay})
}

func TestVersionsAreFoundTheNewestFirst(t *testing.T) {
	t.Parallel()
	s, err := Build([]workflow.Source{named("b", 1, 0), named("a", 1, 0), named("b", 3, 2*time.Hour), named("b", 2, 0)}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if s.Find("b", 0).Version != 3 || s.Find("b", 2).Version != 2 || s.Find("b", 4) != nil || s.Find("c", 0) != nil {
		t.Error("not the versions that were asked for")
	}
	if !slices.Equal(s.Names(), []string{"a", "b"}) || len(s.Versions("b")) != 3 || s.Versions("c") != nil {
		t.Errorf("%v, and of b %d", s.Names(), len(s.Versions("b")))
	}
	if list := s.Newest(); len(list) != 2 || list[0].Name != "a" || list[1].Version != 3 || len(s.All()) != 4 {
		t.Errorf("the newest are %v", list)
	}
	if a, b := s.Horizons("a").Replay, s.Horizons("b").Replay; a != time.Hour || b != 2*time.Hour {
		t.Errorf("answers are replayed for %s and %s", a, b)
	}
	_, err = s.Prepare(transitions.Command{Key: "k", Workflow: "c", Transition: "begin"}, uuid.New)
	if workflow.CodeOf(err) != workflow.WorkflowNotFound {
		t.Errorf("an unknown workflow: %v", err)
	}
}

func TestAllMistakesOfDefinitionsAreTold(t *testing.T) {
	t.Parallel()
	_, err := Build([]workflow.Source{named("a", 1, 0), named("a", 1, 0), named("b", 0, 0)}, time.Hour)
	for _, want := range []string{`workflow "a" version 1 is given twice`, "the version is 0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
