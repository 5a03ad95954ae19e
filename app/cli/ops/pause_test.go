package ops_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		assert.Equal(t, step.says, p.run(step.args), step.args)
	}
	wantTable(t, p.run("paused"), `
since                 workflow  by   reason
(a time in UTC)       order     ann  upgrade`)
	p.serve(func(e *engine.Engine) {
		_, err := e.Submit(t.Context(), place(1))
		assert.Equalf(t, workflow.Paused, workflow.CodeOf(err), "while it is paused: %v", err)
	})
	var list api.PausedList
	err := json.Unmarshal([]byte(p.run("paused -o json")), &list)
	assert.Truef(t, err == nil && len(list.Workflows) == 1 && list.Workflows[0].Actor == "ann", "%+v, %v", list, err)
	assert.Contains(t, p.run("resume order -o json"), `"done": "resumed"`)
	assert.Equal(t, nothingPaused, p.run("paused -o json"))
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
		require.NoError(t, err)
	})
	var all api.PausedList
	if err := json.Unmarshal([]byte(p.run("paused --instances -o json --workflow order")), &all); err != nil || len(all.Instances) != 1 ||
		all.Instances[0].Actor != "ann" || all.Instances[0].Reason != "flood" || all.Instances[0].BusinessKey != "c:1" {
		t.Fatalf("%+v, %v", all, err)
	}
	got := p.run("paused --instances")
	assert.True(t, strings.Contains(got, "flood") && strings.Contains(got, all.Instances[0].Instance.String()), got)
	assert.Equal(t, nothingPaused, p.run("paused --instances -o json --tenant other"))
	p.fails("paused --instances --workflow ordre", "workflow_not_found")
}
