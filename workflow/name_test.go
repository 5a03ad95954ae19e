package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/workflow"
)

func TestNamesAreThoseOfTheDefinition(t *testing.T) {
	type paper struct{ Text string }
	type note struct{ Text string }
	write := func(_ *workflow.Call, p *paper, n note) error { p.Text = n.Text; return nil }
	def := workflow.Define("paper", 1,
		workflow.Start("write", "written", write),
		workflow.On("change", workflow.From("written"), "written", write)).Final()
	if got := workflow.NameOf[note](def, "change"); got != (workflow.Name[note]{Workflow: "paper", Transition: "change"}) {
		t.Errorf("%+v", got)
	}
	for want, name := range map[string]func(){
		`workflow "paper" has no transition "burn"`:    func() { workflow.NameOf[note](def, "burn") },
		`the payload of "write" is workflow_test.note`: func() { workflow.NameOf[paper](def, "write") },
	} {
		if got := panicked(name); !strings.Contains(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if panicked(func() { workflow.NameOf[note](workflow.Define[paper]("", 0), "write") }) == "" {
		t.Error("a definition with mistakes has names")
	}
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
