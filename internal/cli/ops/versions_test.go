package ops_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
)

func TestOpsSaysWithWhichVersionNewInstancesBegin(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.serve(func(e *engine.Engine) {
		if _, err := e.Submit(t.Context(), place(1)); err != nil {
			t.Error(err)
		}
	})
	if got := p.run("begin order 1 --by ann"); got != "order: new instances begin with version 1\n" {
		t.Error(got)
	}
	var list []api.WorkflowVersion
	if err := json.Unmarshal([]byte(p.run("versions -o json")), &list); err != nil || len(list) == 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, v := range list {
		if v.Workflow == "order" && (!v.Begins || v.Open != 1 || len(v.States) != 1 || len(v.Nodes) != 0) {
			t.Errorf("%+v", v)
		}
	}
	if got := p.run("versions"); !strings.Contains(got, "nodes without it") || !strings.Contains(got, "new ones") {
		t.Error(got)
	}
	if got := p.run("begin order newest -o json"); !strings.Contains(got, `"version": 0`) {
		t.Error(got)
	}
}
