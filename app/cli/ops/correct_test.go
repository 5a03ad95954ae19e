package ops_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestOpsCorrectsOneInstance(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.more = sacks()
	var id string
	p.serve(func(e *engine.Engine) {
		r, err := e.Submit(t.Context(), transitions.Command{Workflow: "sack", Transition: "fill", Key: "1", Payload: []byte(`{"weight":7}`)})
		assert.NoError(t, err)
		id = r.Instance.String()
	})
	about := "correct --instance " + id
	assert.Equal(t, "state shipped\ndata  {\"weight\":7}\nopen  false\n", p.run(about+" --state shipped --dry-run --reason",
		"seen in Graz"))
	assert.Contains(t, p.run(about+` --data {"weight":8} --by ann --reason weighed`), `"version":2`)
	got := p.run("show " + id)
	assert.True(t, strings.Contains(got, `{"weight":8}`) && strings.Contains(got, "pawl.corrected") && strings.Contains(got, "weighed"),
		got)
	p.fails("correct --workflow sack --business-key ZZ --state shipped --reason x", `workflow "sack" has no instance`, `"ZZ"`)
	p.fails(about+" --state shipped", "--reason")
	p.fails(about+" --reason x", "--state or --data")
	p.fails("correct --state shipped --reason x", "--instance")
	p.fails(about+" --data x --reason x", "not JSON")
	p.fails(about+" --state lost --reason x", "no such state")
}

type tin struct {
	Until time.Time `json:"until"`
}

// A correction of a date that a timer waits for is announced before the timer fires at once.
func TestOpsCorrect_OverdueTimers(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.more = []workflow.Source{workflow.Define("tin", 1,
		workflow.Start("fill", "full", func(_ *workflow.Call, d *tin, in tin) error { *d = in; return nil }).
			BusinessKey(func(tin) string { return "T-1" }),
		workflow.On("spoil", workflow.From("full"), "spoilt", func(*workflow.Call, *tin, workflow.None) error { return nil })).
		Final("spoilt").At("spoils", workflow.From("full"), func(d tin) time.Time { return d.Until }, "spoil")}
	p.serve(func(e *engine.Engine) {
		submit(t, e, transitions.Command{Workflow: "tin", Transition: "fill", Key: "1", Payload: []byte(`{"until":"2999-01-01T00:00:00Z"}`)})
	})
	const about = `correct --workflow tin --business-key T-1 --reason misread --data {"until":"2020-01-01T00:00:00Z"}`
	const timer = "timer spoils was due at 2020-01-01T00:00:00Z, and fires at once: spoil\n"
	assert.Contains(t, p.run(about+" --dry-run"), timer)
	assert.Contains(t, p.run(about), `"overdue":[{"timer":"spoils","transition":"spoil","due":"2020-01-01T00:00:00Z"`)
}
