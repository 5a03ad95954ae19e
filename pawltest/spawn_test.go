package pawltest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// folder is the data of a parent that remembers its children.
type folder struct {
	Children []uuid.UUID `json:"children,omitempty"`
	Failed   string      `json:"failed,omitempty"`
}

// sheet is the payload of "add": the business keys of the sheets that are started, "" for one without.
type sheet struct {
	Names []string `json:"names,omitempty"`
}

func folders() []workflow.Source {
	add := func(c *workflow.Call, d *folder, s sheet) error {
		for _, name := range s.Names {
			child := workflow.Child{Workflow: "sheet", Transition: "begin", End: "filled"}
			if name != "" {
				child.Transition, child.BusinessKey, child.Payload = "name", name, sheet{Names: []string{name}}
			}
			d.Children = append(d.Children, c.Spawn(child))
		}
		return nil
	}
	none := func(*workflow.Call, *folder, sheet) error { return nil }
	return []workflow.Source{
		workflow.Define("folder", 1,
			workflow.Start("open", "open", add),
			workflow.On("add", workflow.From("open"), workflow.Stay, add),
			workflow.On("filled", workflow.From("open"), workflow.Stay,
				func(*workflow.Call, *folder, workflow.Ended[folder]) error { return nil }),
			workflow.Do("print", workflow.From("open"), "printing", "open", func(_ context.Context, _ *workflow.Attempt, _ folder, s sheet) (sheet, error) { return s, nil }, add).
				OrElse("open", func(_ *workflow.Call, d *folder, f workflow.Failure) error { d.Failed = string(f.Kind); return nil }),
			workflow.On("close", workflow.From("open"), "closed", none)).Final("closed"),
		workflow.Define("sheet", 1,
			workflow.Start("begin", "empty", none),
			workflow.Start("name", "empty", none).BusinessKey(func(s sheet) string { return s.Names[0] }),
			workflow.On("fill", workflow.From("empty"), "full", none)).Final("full"),
	}
}

func TestSpawn_ReturnsID(t *testing.T) {
	t.Parallel()
	s := pawltest.Run(t, folders()...)
	f := s.Start("folder", "open", sheet{Names: []string{"", "A"}})
	f.Do("add", sheet{Names: []string{"B", ""}})
	s.Await(f.Do("print", sheet{Names: []string{"", "C"}}))
	var want []uuid.UUID
	for _, c := range f.Children() {
		want = append(want, c.ID)
	}
	got := pawltest.Data[folder](f).Children
	assert.Truef(t, len(got) == 6 && slices.Equal(got, want), "the parent knows %v, and has started %v", got, want)
	id := transitions.InstanceID("default", "sheet", "B")
	assert.Truef(t, want[2] == id && s.Case(id).Instance().BusinessKey == "B", "B is %s", want[2])
	s.Case(want[2]).Do("fill", nil)
	s.Settle()
	wantSteps(t, f, "open", "add", "print.accepted", "print", "filled")
}
