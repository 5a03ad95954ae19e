package definitions

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/decide"
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
	require.NoError(t, err)
	assert.True(t, s.Find("b", 0).Version == 3 && s.Find("b", 2).Version == 2 && s.Find("b", 4) == nil && s.Find("c", 0) == nil,
		"not the versions that were asked for")
	assert.Truef(t, slices.Equal(s.Names(), []string{"a", "b"}) && len(s.Versions("b")) == 3 && s.Versions("c") == nil,
		"%v, and of b %d", s.Names(), len(s.Versions("b")))
	list := s.Newest()
	assert.Truef(t, len(list) == 2 && list[0].Name == "a" && list[1].Version == 3 && len(s.All()) == 4, "the newest are %v", list)
	if a, b := s.Horizons("a").Replay, s.Horizons("b").Replay; a != time.Hour || b != 2*time.Hour {
		t.Errorf("answers are replayed for %s and %s", a, b)
	}
	p, err := decide.Accept(transitions.Command{Key: "k", Workflow: "c", Transition: "begin"})
	require.NoError(t, err)
	err = s.Resolve(p, uuid.New)
	assert.Equalf(t, workflow.WorkflowNotFound, workflow.CodeOf(err), "an unknown workflow: %v", err)
}

func TestAllMistakesOfDefinitionsAreTold(t *testing.T) {
	t.Parallel()
	_, err := Build([]workflow.Source{named("a", 1, 0), named("a", 1, 0), named("b", 0, 0)}, time.Hour)
	for _, want := range []string{`workflow "a" version 1 is given twice`, "the version is 0"} {
		assert.ErrorContains(t, err, want, "does not say")
	}
}

func TestDefaultVersion_Newest(t *testing.T) {
	t.Parallel()
	s, err := Build([]workflow.Source{named("a", 1, 0), named("a", 3, 0), named("a", 4, 0), named("b", 2, 0)}, time.Hour)
	require.NoError(t, err)
	for said, want := range map[int]int{0: 1, 1: 1, 2: 1, 3: 3, 4: 4, 9: 4} {
		versions := map[string]int{"a": said, "c": 1}
		s.Begin(versions)
		if w := s.Find("a", 0); w.Version != want || len(s.Versions("a")) != 3 || s.Find("b", 0).Version != 2 {
			t.Errorf("said %d, it is %d", said, w.Version)
		}
		assert.Truef(t, s.Begun(versions) && s.Begun(nil) == (want == 4), "said %d: whether it has begun is wrong", said)
	}
	for _, tt := range []struct {
		name      string
		elsewhere map[string]int
		want      bool
	}{
		{"a", map[string]int{"a": 5}, true}, {"", map[string]int{"a": 5}, true}, {"b", map[string]int{"a": 5, "b": 2}, false},
		{"", map[string]int{"c": 5, "a": 4}, false}, {"c", map[string]int{"c": 5}, false}, {"a", nil, false},
	} {
		assert.Equalf(t, tt.want, s.Behind(tt.name, tt.elsewhere), "%q, elsewhere %v", tt.name, tt.elsewhere)
	}
}

// The default version changes while commands are prepared.
func TestASetIsReadWhileItChanges(t *testing.T) {
	t.Parallel()
	s, err := Build([]workflow.Source{named("a", 1, 0), named("a", 2, 0)}, time.Hour)
	require.NoError(t, err)
	var work sync.WaitGroup
	for n := range 4 {
		work.Go(func() {
			for i := range 500 {
				if n == 0 {
					s.Begin(map[string]int{"a": 1 + i%2})
					continue
				}
				p, err := decide.Accept(transitions.Command{Key: "k", Workflow: "a", Transition: "begin"})
				assert.Truef(t, err == nil && s.Resolve(p, uuid.New) == nil && len(s.Versions("a")) == 2 && len(s.Routes()) == 0 && p.Definition.Name == "a",
					"%+v, %v", p, err)
			}
		})
	}
	work.Wait()
}
