package ops_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestOpsPausesAWorkflowUntilItIsResumed(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	for _, step := range []struct{ args, says string }{
		{"paused", "since  workflow  by  reason\n"},
		{"pause order --by ann --reason upgrade", "order: paused\n"},
		{"pause order --by bob", "order: paused\n"}, // and stays as it is
		{"resume order --tenant other", "order: resumed\n"},
	} {
		if got := p.run(step.args); got != step.says {
			t.Errorf("%s: %q", step.args, got)
		}
	}
	wantTable(t, p.run("paused"), `
since                 workflow  by   reason
(a time in UTC)       order     ann  upgrade`)
	p.serve(func(e *engine.Engine) {
		if _, err := e.Submit(t.Context(), place(1)); workflow.CodeOf(err) != workflow.Paused {
			t.Errorf("while it is paused: %v", err)
		}
	})
	var list api.PausedList
	if err := json.Unmarshal([]byte(p.run("paused -o json")), &list); err != nil || len(list.Workflows) != 1 ||
		list.Workflows[0].Actor != "ann" {
		t.Errorf("%+v, %v", list, err)
	}
	if got := p.run("resume order -o json"); !strings.Contains(got, `"done": "resumed"`) {
		t.Error(got)
	}
	if got := p.run("paused -o json"); got != nothingPaused {
		t.Error(got)
	}
	p.fails("pause ordre", "workflow_not_found")
}

// nothingPaused is the answer to "paused" with -o json.
const nothingPaused = "{\n  \"workflows\": [],\n  \"instances\": []\n}\n"

func TestOpsPausedListsInstances(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.serve(func(e *engine.Engine) {
		r, err := e.Submit(t.Context(), place(1))
		if err == nil {
			r, err = e.Admin().Operate(t.Context(), transitions.Command{Instance: r.Instance, Key: "p", Actor: "ann"},
				transitions.Operation{Action: transitions.Pause, Reason: "flood"})
		}
		if err == nil {
			err = r.Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	var all api.PausedList
	if err := json.Unmarshal([]byte(p.run("paused --instances -o json --workflow order")), &all); err != nil || len(all.Instances) != 1 ||
		all.Instances[0].Actor != "ann" || all.Instances[0].Reason != "flood" || all.Instances[0].BusinessKey != "c:1" {
		t.Fatalf("%+v, %v", all, err)
	}
	if got := p.run("paused --instances"); !strings.Contains(got, "flood") || !strings.Contains(got, all.Instances[0].Instance.String()) {
		t.Error(got)
	}
	if got := p.run("paused --instances -o json --tenant other"); got != nothingPaused {
		t.Error(got)
	}
	p.fails("paused --instances --workflow ordre", "workflow_not_found")
}
