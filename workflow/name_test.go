package workflow_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/workflow"
)

func TestNamesAreThoseOfTheDefinition(t *testing.T) {
	type paper struct{ Text string }
	type note struct{ Text string }
	write := func(_ *workflow.Call, p *paper, n note) error { p.Text = n.Text; return nil }
	def := workflow.Define("paper", 1,
		workflow.Start("write", "written", write),
		workflow.On("change", workflow.From("written"), "written", write)).Final()
	assert.Equal(t, (workflow.Name[note]{Workflow: "paper", Transition: "change"}), workflow.NameOf[note](def, "change"))
	for want, name := range map[string]func(){
		`workflow "paper" has no transition "burn"`:    func() { workflow.NameOf[note](def, "burn") },
		`the payload of "write" is workflow_test.note`: func() { workflow.NameOf[paper](def, "write") },
	} {
		assert.Contains(t, panicked(name), want)
	}
	assert.NotEqual(t, "", panicked(func() { workflow.NameOf[note](workflow.Define[paper]("", 0), "write") }),
		"a definition with mistakes has names")
}

func panicked(f func()) (with string) {
	defer func() {
		if r := recover(); r != nil {
			with = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}
