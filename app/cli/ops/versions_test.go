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
	var list api.VersionList
	if err := json.Unmarshal([]byte(p.run("versions -o json")), &list); err != nil || len(list.Versions) == 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, v := range list.Versions {
		if v.Workflow == "order" && (!v.Begins || v.Open != 1 || len(v.States) != 1 || len(v.Nodes) != 0) {
			t.Errorf("%+v", v)
		}
	}
	if got := p.run("versions"); !strings.Contains(got, "nodes without it") || !strings.Contains(got, "new ones, as said") {
		t.Error(got)
	}
	if got := p.run("begin order newest -o json"); !strings.Contains(got, `"version": 0`) || !strings.Contains(got, `"begins": 1`) {
		t.Error(got)
	}
	if got := p.run("versions"); strings.Contains(got, "as said") || !strings.Contains(got, "new ones") {
		t.Error(got)
	}
}

// Who goes back to the newest version hears which one that is.
func TestOpsSaysWhichVersionTheNewestIs(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.more = sacks()
	p.serve(func(*engine.Engine) {})
	if got := p.run("begin sack 1"); got != "sack: new instances begin with version 1\n" {
		t.Error(got)
	}
	if got := p.run("begin sack newest"); got != "sack: new instances begin with the newest version that a node knows, now 2\n" {
		t.Error(got)
	}
}
