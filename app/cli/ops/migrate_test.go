package ops_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

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

func TestOpsMigratesInstancesAndShowsHowFarItIs(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.more = sacks()
	p.run("begin sack 1")
	p.serve(func(e *engine.Engine) {
		for weight := range 3 {
			submit(t, e, transitions.Command{Workflow: "sack", Transition: "fill", Key: fmt.Sprint(weight),
				Payload: fmt.Appendf(nil, `{"weight":%d}`, weight)})
		}
		got := p.run("migrate sack 1 2 --dry-run")
		assert.True(t, strings.Contains(got, "packed") && strings.Contains(got, "it is too heavy"), got)
		stdout, stderr, err := p.try("migrate sack 1 2 --by ann --reason", "new sacks")
		assert.Truef(t, err == nil && !strings.Contains(stderr, "no node") && strings.Contains(stdout, "migrated  2") &&
			strings.Contains(stdout, "rejected  1") && strings.Contains(stdout, "it is too heavy"),
			"%v, %s%s", err, stdout, stderr)
	})
	got := p.run("migrations")
	assert.True(t, strings.Contains(got, "ended") && strings.Contains(got, "sack"), got)
	// Nobody serves: it is begun, and waits for a node.
	var m inspect.Migration
	stdout, stderr, err := p.try("migrate sack 1 2 --background -o json")
	assert.Truef(t, err == nil && strings.Contains(stderr, "no node serves that knows both versions"), "%v, %s", err, stderr)
	err = json.Unmarshal([]byte(stdout), &m)
	assert.Truef(t, err == nil && m.ID != 0 && m.EndedAt.IsZero() && m.Expected == 1, "%+v, %v", m, err)
	p.fails("migrate sack 1 2 --background", "is under way")
	if stdout, _, err := p.try(fmt.Sprint("stop-migration ", m.ID, " --by olga --reason"), "wrong sacks"); err != nil ||
		!strings.Contains(stdout, "stopped by olga: wrong sacks") {
		t.Errorf("%v, %s", err, stdout)
	}
	wantTable(t, p.run("migrations"), `
id  begun                 workflow  from  to  migrated  skipped  rejected  left  state
 2  (a time in UTC)       sack         1   2         0        0         0     1  stopped by olga: wrong sacks
 1  (a time in UTC)       sack         1   2         2        0         1     0  ended: new instances begin with version 1`)
	p.fails("migrate sack 1 x", "is not a version")
	p.fails("migrate sack 2 1", "no plan")
	p.fails("stop-migration 99", "no migration 99")
}
