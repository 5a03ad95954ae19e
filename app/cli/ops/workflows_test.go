package ops_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type sack struct {
	Weight int `json:"weight"`
}

func sacks() []workflow.Source {
	weigh := func(_ *workflow.Call, d *sack, p sack) error { *d = p; return nil }
	define := func(version int, open workflow.State) *workflow.Definition[sack] {
		return workflow.Define("sack", version, workflow.Start("fill", open, weigh),
			workflow.On("ship", workflow.From(open), "shipped", func(*workflow.Call, *sack, workflow.None) error { return nil })).Final("shipped")
	}
	return []workflow.Source{define(1, "open"), define(2, "packed").Migrate(workflow.FromVersion(1, func(old sack) (sack, error) {
		if old.Weight > 1 {
			return old, workflow.Refuse("it is too heavy")
		}
		return old, nil
	}).State("open", "packed"))}
}

func TestOpsMigratesInstancesAndShowsProgress(t *testing.T) {
	t.Parallel()
	p := newProgram(t, sacks()...)
	p.run("begin sack 1")
	p.serve(func(e *engine.Engine) {
		for weight := range 3 {
			submit(t, e, transitions.Command{Workflow: "sack", Transition: "fill", Key: fmt.Sprint(weight),
				Payload: fmt.Appendf(nil, `{"weight":%d}`, weight)})
		}
		p.has("migrate sack 1 2 --dry-run", "packed", "it is too heavy")
		stdout, stderr, err := p.try("migrate sack 1 2 --by ann --reason", "new sacks")
		require.NoError(t, err)
		assert.NotContains(t, stderr, "no node")
		for _, want := range []string{"migrated  2", "rejected  1", "it is too heavy"} {
			assert.Contains(t, stdout, want)
		}
	})
	// No node serves: the migration is started, and waits for one.
	stdout, stderr, err := p.try("migrate sack 1 2 --background -o json")
	require.NoError(t, err)
	assert.Contains(t, stderr, "no node serves that knows both versions")
	var m inspect.Migration
	require.NoError(t, json.Unmarshal([]byte(stdout), &m))
	p.fails("migrate sack 1 2 --background", "is under way")
	stdout, _, err = p.try(fmt.Sprint("stop-migration ", m.ID, " --by olga --reason"), "wrong sacks")
	require.NoError(t, err)
	assert.Contains(t, stdout, "stopped by olga: wrong sacks")
	wantTable(t, p.run("migrations"), `
id  begun                 workflow  from  to  migrated  skipped  rejected  left  state
 2  (a time in UTC)       sack         1   2         0        0         0     1  stopped by olga: wrong sacks
 1  (a time in UTC)       sack         1   2         2        0         1     0  ended: new instances begin with version 1`)
	p.fails("migrate sack 1 x", "is not a version")
	p.fails("migrate sack 2 1", "no plan")
	p.fails("stop-migration 99", "no migration 99")
}

func TestOpsBegin_SetsDefaultVersion(t *testing.T) {
	t.Parallel()
	p := newProgram(t, sacks()...)
	p.serve(func(e *engine.Engine) { submit(t, e, place(1)) })
	assert.Equal(t, "order: new instances begin with version 1\n", p.run("begin order 1 --by ann"))
	for _, v := range read[api.VersionList](p, "versions").Versions {
		if v.Workflow == "order" {
			assert.True(t, v.Begins)
			assert.Equal(t, 1, int(v.Open))
		}
	}
	p.has("versions", "nodes without it", "new ones, as set")
	p.has("begin order newest -o json", `"version": 0`, `"begins": 1`)
	assert.Equal(t, "sack: new instances begin with the newest version that a node knows, now 2\n", p.run("begin sack newest"))
	assert.NotContains(t, p.run("versions"), "as set")
}

func TestOpsPauseAndResume(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	var instance string
	p.serve(func(e *engine.Engine) {
		instance = submit(t, e, place(1))
		_, err := e.Admin().Operate(t.Context(), transitions.Command{Instance: uuid.MustParse(instance), Key: "p", Actor: "ann"},
			transitions.Operation{Action: transitions.Pause, Reason: "flood"})
		require.NoError(t, err)
	})
	for _, step := range []struct{ args, says string }{
		{"paused", "since  workflow  by  reason\n"},
		{"pause order --by ann --reason upgrade", "order: paused\n"},
		{"pause order --by bob", "order: paused\n"}, // keeps the first reason
		{"resume order --tenant other", "order: resumed\n"},
	} {
		assert.Equal(t, step.says, p.run(step.args), step.args)
	}
	wantTable(t, p.run("paused"), `
since                 workflow  by   reason
(a time in UTC)       order     ann  upgrade`)
	p.has("resume order -o json", `"done": "resumed"`)
	p.fails("pause ordre", "workflow_not_found")
	p.has("paused --instances", "flood", instance)
	assert.Len(t, read[api.PausedList](p, "paused --instances --workflow order").Instances, 1)
	assert.Equal(t, "{\n  \"workflows\": [],\n  \"instances\": []\n}\n", p.run("paused --instances -o json --tenant other"))
	p.fails("paused --instances --workflow ordre", "workflow_not_found")
}
