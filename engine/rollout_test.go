package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type crate struct{}

type crateNote struct {
	Text string `json:"text"`
}

// crates is a workflow with work; from its second version on something can be noted, and labels have a colour.
func crates(version int) workflow.Source {
	nothing := func(*workflow.Call, *crate, workflow.None) error { return nil }
	parts := []workflow.Part[crate]{
		workflow.Start("pack", "packed", nothing),
		workflow.Do("send", workflow.From("packed"), "sending", "sent",
			func(context.Context, *workflow.Attempt, crate, workflow.None) (crate, error) { return crate{}, nil },
			func(*workflow.Call, *crate, crate) error { return nil }).
			OrElse("packed", func(*workflow.Call, *crate, workflow.Failure) error { return nil }),
	}
	type label struct {
		Name string `json:"name"`
	}
	type colouredLabel struct {
		Name   string `json:"name"`
		Colour string `json:"colour"`
	}
	if version == 1 {
		parts = append(parts, workflow.On("label", workflow.From("packed"), workflow.Stay,
			func(*workflow.Call, *crate, label) error { return nil }))
	} else {
		parts = append(parts, workflow.On("label", workflow.From("packed"), workflow.Stay,
			func(*workflow.Call, *crate, colouredLabel) error { return nil }),
			workflow.On("note", workflow.From("packed"), workflow.Stay, func(*workflow.Call, *crate, crateNote) error { return nil }))
	}
	return workflow.Define("crate", version, parts...).Final("sent")
}

func packed(t *testing.T, e *engine.Engine, key string) transitions.Receipt {
	t.Helper()
	return submit(t, e, transitions.Command{Workflow: "crate", Transition: "pack", Key: key})
}

// An old node claims nothing that it could not do, however much of that is due, and does
// what it can.
func TestANodeLeavesTheWorkOfVersionsAloneThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	const news, olds = 12, 3
	pool := database(t)
	noWorkers := func(c *engine.Config) { c.InFlight.Workers = -1 }
	accepts := newEngine(t, pool, running(crates(1), crates(2)), noWorkers)
	acceptsOld := newEngine(t, pool, running(crates(1)), noWorkers)
	old := newEngine(t, pool, running(crates(1)))
	send := func(e *engine.Engine, n int) (refs []transitions.Receipt) {
		for i := range n {
			inst := packed(t, e, fmt.Sprint(e == accepts, i)).Instance
			refs = append(refs, submit(t, e, transitions.Command{Workflow: "crate", Transition: "send", Key: fmt.Sprint(i), Instance: inst}))
		}
		return refs
	}
	beyond, within := send(accepts, news), send(acceptsOld, olds)
	for _, r := range within {
		if _, err := old.Await(t.Context(), transitions.Ref{Scope: r.Record.Scope, Key: r.Record.Key}); err != nil {
			t.Fatal(err)
		}
	}
	if n := query[int](t, pool, "SELECT count(*) FROM pawl.command WHERE definition = 2 AND attempt > 0"); n > 0 {
		t.Errorf("%d commands of a version that it does not know were claimed in vain", n)
	}
	if n := query[int](t, pool, "SELECT count(*) FROM pawl.command WHERE definition = 2 AND attempt = 0"); n != news {
		t.Errorf("%d commands wait, want %d", n, news)
	}
	newer := newEngine(t, pool, running(crates(1), crates(2)))
	for _, r := range beyond {
		if _, err := newer.Await(t.Context(), transitions.Ref{Scope: r.Record.Scope, Key: r.Record.Key}); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever only another node can answer is to be tried again, and lost for nobody.
func TestANodeSaysThatAnotherMayKnowTheVersion(t *testing.T) {
	t.Parallel()
	pool := database(t)
	newer := newEngine(t, pool, running(crates(1), crates(2)))
	old := newEngine(t, pool, running(crates(1)))
	id := packed(t, newer, "1").Instance
	for transition, payload := range map[string]string{"send": `{}`, "label": `{"name":"a","colour":"red"}`, "note": `{"text":"a"}`} {
		c := transitions.Command{Workflow: "crate", Transition: transition, Key: transition, Instance: id, Payload: []byte(payload)}
		_, err := old.Submit(t.Context(), c)
		if workflow.CodeOf(err) != workflow.NotOnThisNode {
			t.Errorf("%s: %v", transition, err)
		}
	}
	if info := workflow.NotOnThisNode.Info(); info.Status != 503 || info.Final || !info.Retry {
		t.Errorf("%+v", info)
	}
	// What nobody could do is the caller's mistake.
	own := packed(t, old, "2").Instance
	_, err := old.Submit(t.Context(), transitions.Command{Workflow: "crate", Transition: "note", Key: "n", Instance: own})
	wantCode(t, err, workflow.TransitionNotFound)
}

func TestNewInstancesBeginWithTheVersionThatIsSaid(t *testing.T) {
	t.Parallel()
	pool := database(t)
	one := newEngine(t, pool, running(crates(1), crates(2)))
	other := newEngine(t, pool, running(crates(1), crates(2)))
	versionOf := func(e *engine.Engine, key string) int {
		inst, err := e.Read().Instance(t.Context(), "", packed(t, e, key).Instance)
		if err != nil {
			t.Fatal(err)
		}
		return inst.Definition
	}
	if v := versionOf(one, "newest"); v != 2 {
		t.Errorf("without a word it is version %d", v)
	}
	for step, version := range []int{1, 2, 1, 0} {
		if err := one.Admin().BeginVersion(t.Context(), "crate", version, "ann"); err != nil {
			t.Fatal(err)
		}
		want := version
		if version == 0 {
			want = 2
		}
		if v := versionOf(one, fmt.Sprint("here ", step)); v != want {
			t.Errorf("said %d, it is %d", version, v)
		}
	}
	if err := one.Admin().BeginVersion(t.Context(), "crate", 1, "ann"); err != nil {
		t.Fatal(err)
	}
	tries := 0
	eventually(t, "another node knows", func() bool { tries++; return versionOf(other, fmt.Sprint("there ", tries)) == 1 })
	late := newEngine(t, pool, running(crates(1), crates(2)))
	if v := versionOf(late, "late"); v != 1 {
		t.Errorf("a node that starts later begins version %d", v)
	}
	wantCode(t, one.Admin().BeginVersion(t.Context(), "crate", 3, "ann"), workflow.WorkflowNotFound)
	wantCode(t, one.Admin().BeginVersion(t.Context(), "box", 0, "ann"), workflow.WorkflowNotFound)
}

func TestVersionsAreListedWithInstancesAndNodes(t *testing.T) {
	t.Parallel()
	pool := database(t)
	old := newEngine(t, pool, running(crates(1)))
	packed(t, old, "1")
	newer := newEngine(t, pool, running(crates(1), crates(2)))
	for _, key := range []string{"2", "3"} {
		packed(t, newer, key)
	}
	list, err := newer.Admin().VersionsInUse(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	one, two := list[0], list[1]
	if one.Version != 1 || one.Begins || one.Open != 1 || len(one.Nodes) != 2 || len(one.NodesWithout) != 0 {
		t.Errorf("%+v", one)
	}
	if two.Version != 2 || !two.Begins || two.Open != 2 || len(two.Nodes) != 1 || len(two.NodesWithout) != 1 || !two.Exact {
		t.Errorf("%+v", two)
	}
	if !slices.Equal(two.States, []inspect.StateCount{{State: "packed", Open: true, Count: 2, Exact: true}}) {
		t.Errorf("%+v", two.States)
	}
	old.Stop(context.Background())
	if list, err = newer.Admin().VersionsInUse(t.Context()); err != nil || len(list[1].NodesWithout) != 0 {
		t.Errorf("a node that has ended is still there: %+v, %v", list, err)
	}
}

func running(sources ...workflow.Source) func(*engine.Config) {
	return func(c *engine.Config) { c.Workflows = sources }
}
