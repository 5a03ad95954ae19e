package ops_test

import (
	"strings"
	"testing"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

func TestOpsCorrectsOneInstance(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.more = sacks()
	var id string
	p.serve(func(e *engine.Engine) {
		r, err := e.Submit(t.Context(), transitions.Command{Workflow: "sack", Transition: "fill", Key: "1", Payload: []byte(`{"weight":7}`)})
		if err != nil {
			t.Error(err)
		}
		id = r.Instance.String()
	})
	about := "correct --instance " + id
	if got := p.run(about+" --state shipped --dry-run --reason", "seen in Graz"); got != "state shipped\ndata  {\"weight\":7}\nopen  false\n" {
		t.Errorf("%q", got)
	}
	if got := p.run(about + ` --data {"weight":8} --by ann --reason weighed`); !strings.Contains(got, `"version":2`) {
		t.Error(got)
	}
	if got := p.run("show " + id); !strings.Contains(got, `{"weight":8}`) || !strings.Contains(got, "pawl.corrected") ||
		!strings.Contains(got, "weighed") {
		t.Error(got)
	}
	p.fails(about+" --state shipped", "--reason")
	p.fails(about+" --reason x", "--state or --data")
	p.fails("correct --state shipped --reason x", "--instance")
	p.fails(about+" --data x --reason x", "not JSON")
	p.fails(about+" --state lost --reason x", "no such state")
}
