package engine_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	noop := nothing[crate, workflow.None]
	parts := []workflow.Part[crate]{workflow.Start("pack", "packed", noop), workflow.Do("send", workflow.From("packed"), "sending", "sent",
		func(context.Context, *workflow.Attempt, crate, workflow.None) (crate, error) { return crate{}, nil }, nothing[crate, crate]).
		OrElse("packed", nothing[crate, workflow.Failure])}
	type label struct {
		Name string `json:"name"`
	}
	type colouredLabel struct {
		Name   string `json:"name"`
		Colour string `json:"colour"`
	}
	if version == 1 {
		parts = append(parts, workflow.On("label", workflow.From("packed"), workflow.Stay, nothing[crate, label]))
	} else {
		parts = append(parts, workflow.On("label", workflow.From("packed"), workflow.Stay, nothing[crate, colouredLabel]),
			workflow.On("note", workflow.From("packed"), workflow.Stay, nothing[crate, crateNote]))
	}
	return workflow.Define("crate", version, parts...).Final("sent")
}

func packed(t *testing.T, e *engine.Engine, key string) transitions.Receipt {
	t.Helper()
	return submit(t, e, transitions.Command{Workflow: "crate", Transition: "pack", Key: key})
}

// An old node claims nothing that it could not do, however much of that is due, and does
// what it can.
func TestUnknownVersionsAreLeftAlone(t *testing.T) {
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
		require.NoError(t, errOf(old.Await(t.Context(), transitions.Ref{Scope: r.Record.Scope, Key: r.Record.Key})))
	}
	n := query[int](t, pool, "SELECT count(*) FROM pawl.command WHERE definition = 2 AND attempt > 0")
	assert.Truef(t, n <= 0, "%d commands of a version that it does not know were claimed in vain", n)
	assert.Equal(t, news, query[int](t, pool, "SELECT count(*) FROM pawl.command WHERE definition = 2 AND attempt = 0"), "commands wait")
	newer := newEngine(t, pool, running(crates(1), crates(2)))
	for _, r := range beyond {
		require.NoError(t, errOf(newer.Await(t.Context(), transitions.Ref{Scope: r.Record.Scope, Key: r.Record.Key})))
	}
}

// A request that only another node can answer is retryable and is not lost.
func TestANodeSaysThatAnotherMayKnowTheVersion(t *testing.T) {
	t.Parallel()
	pool, newer := started(t, running(crates(1), crates(2)))
	old := newEngine(t, pool, running(crates(1)))
	id := packed(t, newer, "1").Instance
	for transition, payload := range map[string]string{"send": `{}`, "label": `{"name":"a","colour":"red"}`, "note": `{"text":"a"}`} {
		c := transitions.Command{Workflow: "crate", Transition: transition, Key: transition, Instance: id, Payload: []byte(payload)}
		_, err := old.Submit(t.Context(), c)
		assert.Equalf(t, workflow.NotOnThisNode, workflow.CodeOf(err), "%s: %v", transition, err)
	}
	info := workflow.NotOnThisNode.Info()
	assert.Truef(t, info.Status == 503 && !info.Final && info.Retry, "%+v", info)
	// What nobody could do is the caller's mistake.
	own := packed(t, old, "2").Instance
	wantCode(t, errOf(old.Submit(t.Context(), transitions.Command{Workflow: "crate", Transition: "note", Key: "n", Instance: own})),
		workflow.TransitionNotFound)
}

func TestNewInstancesBeginWithTheVersionThatIsSaid(t *testing.T) {
	t.Parallel()
	pool, one := started(t, running(crates(1), crates(2)))
	other := newEngine(t, pool, running(crates(1), crates(2)))
	versionOf := func(e *engine.Engine, key string) int {
		inst, err := e.Read().Instance(t.Context(), "", packed(t, e, key).Instance)
		require.NoError(t, err)
		return inst.Definition
	}
	operator, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{crates(1), crates(2)}}) // serves nothing
	require.NoError(t, err)
	assert.Equal(t, 2, versionOf(one, "newest"), "without a word it is version")
	for step, version := range []int{1, 2, 0, 1} {
		by := []*engine.Engine{one, operator, other}[step%3]
		require.NoError(t, by.Admin().BeginVersion(t.Context(), "crate", version, "ann"))
		for _, e := range []*engine.Engine{one, other} { // it holds on all nodes when it is answered
			want := cmp.Or(version, 2)
			assert.Equalf(t, want, versionOf(e, fmt.Sprint(e == one, step)), "said %d, it", version)
		}
	}
	late := newEngine(t, pool, running(crates(1), crates(2)))
	assert.Equal(t, 1, versionOf(late, "late"), "a node that starts later begins version")
	wantCode(t, one.Admin().BeginVersion(t.Context(), "crate", 3, "ann"), workflow.WorkflowNotFound)
	wantCode(t, one.Admin().BeginVersion(t.Context(), "box", 0, "ann"), workflow.WorkflowNotFound)
}

func TestVersionsAreListedWithInstancesAndNodes(t *testing.T) {
	t.Parallel()
	pool, old := started(t, running(crates(1)))
	packed(t, old, "1")
	newer := newEngine(t, pool, running(crates(1), crates(2)))
	for _, key := range []string{"2", "3"} {
		packed(t, newer, key)
	}
	list, err := newer.Admin().VersionsInUse(t.Context())
	require.Truef(t, err == nil && len(list) == 2, "%+v, %v", list, err)
	one, two := list[0], list[1]
	assert.Truef(t, one.Version == 1 && !one.Begins && one.Open == 1 && len(one.Nodes) == 2 && len(one.NodesWithout) == 0, "%+v", one)
	assert.Truef(t, two.Version == 2 && two.Begins && two.Open == 2 && len(two.Nodes) == 1 && len(two.NodesWithout) == 1 && two.Exact,
		"%+v", two)
	assert.Truef(t, slices.Equal(two.States, []inspect.StateCount{{State: "packed", Open: true, Count: 2, Exact: true}}), "%+v", two.States)
	old.Stop(context.Background())
	list, err = newer.Admin().VersionsInUse(t.Context())
	assert.Truef(t, err == nil && len(list[1].NodesWithout) == 0, "a node that has ended is still there: %+v, %v", list, err)
}

func running(sources ...workflow.Source) func(*engine.Config) {
	return func(c *engine.Config) { c.Workflows = sources }
}

type scanNotice struct {
	Label string `json:"label" validate:"required"`
}

type trunk struct {
	Scans int `json:"scans"`
}

// onNotice has a message of a type cause a transition.
func onNotice(kind string) workflow.Mapping[scanNotice] {
	return workflow.JSON(func(m workflow.Message, n scanNotice) (workflow.Address, scanNotice, error) {
		if m.Type != kind {
			return workflow.Address{}, n, workflow.ErrNotMine
		}
		return workflow.Address{BusinessKey: n.Label}, n, nil
	})
}

// trunks is a workflow that hears of its instances; from its second version on they can be scanned, and begin otherwise, too.
func trunks(version int) workflow.Source {
	take := nothing[trunk, scanNotice]
	key := func(n scanNotice) string { return n.Label }
	parts := []workflow.Part[trunk]{workflow.Start("arrive", "here", take).BusinessKey(key).
		Receive("depot", workflow.JSON(func(m workflow.Message, n scanNotice) (workflow.Address, scanNotice, error) {
			if m.Type != "arrived" {
				return workflow.Address{}, n, workflow.ErrNotMine
			}
			return workflow.Address{}, n, nil
		})), workflow.On("leave", workflow.From("here"), "gone", take).Receive("depot", onNotice("left"))}
	if version > 1 {
		parts = append(parts, workflow.On("scan", workflow.From("here"), workflow.Stay, func(_ *workflow.Call, d *trunk, _ scanNotice) error {
			d.Scans++
			return nil
		}).Receive("depot", onNotice("scanned")), workflow.Start("return", "here", take).BusinessKey(key))
	}
	return workflow.Define("trunk", version, parts...).Final("gone")
}

func fromDepot(id, kind, label string) transitions.Message {
	return transitions.Message{Consumer: "depot", ID: id, Type: kind, Body: fmt.Appendf(nil, `{"label":%q}`, label)}
}

func returned(key, label string) transitions.Command {
	return transitions.Command{Workflow: "trunk", Transition: "return", Key: key, Payload: fmt.Appendf(nil, `{"label":%q}`, label)}
}

// While another node knows a newer version, an unknown transition is a retryable refusal; when only this node is left, the refusal is
// final.
func TestNewerVersion_RetryableRefusal(t *testing.T) {
	t.Parallel()
	pool, old := started(t, running(trunks(1)))
	newer := newEngine(t, pool, running(trunks(1), trunks(2)))
	scanned := fromDepot("m", "scanned", "L-1")
	wantCode(t, errOf(old.Consume(t.Context(), scanned)), workflow.NotOnThisNode) // of no instance yet
	consumed(t, newer, fromDepot("a", "arrived", "L-1"))
	wantCode(t, errOf(old.Consume(t.Context(), scanned)), workflow.NotOnThisNode)
	wantCode(t, errOf(old.Submit(t.Context(), returned("r", "L-2"))), workflow.NotOnThisNode)
	wantCode(t, errOf(old.DryRun(t.Context(), returned("", "L-2"))), workflow.NotOnThisNode)
	replies := old.SubmitMany(t.Context(), []transitions.Command{returned("r", "L-2"),
		{Workflow: "trunk", Transition: "arrive", Key: "b", Payload: []byte(`{"label":"L-3"}`)}})
	if wantCode(t, replies[0].Err, workflow.NotOnThisNode); replies[1].Err != nil {
		t.Errorf("it holds up what this node can do: %v", replies[1].Err)
	}
	wantDead(t, old)
	consumed(t, newer, scanned)
	submit(t, newer, returned("r", "L-2"))
	for _, kind := range []string{"nobody's", "scanned"} { // a node that knows all says what nobody can do
		_, err := newer.Consume(t.Context(), fromDepot("not "+kind, kind, "L-9"))
		assert.Truef(t, !workflow.CodeOf(err).Info().Retry && err != nil, "%s: %v", kind, err)
	}

	newer.Stop(context.Background())
	wantCode(t, errOf(old.Consume(t.Context(), fromDepot("late", "nobody's", "L-1"))), workflow.MessageNotTaken)
	wantCode(t, errOf(old.Submit(t.Context(), returned("late", "L-4"))), workflow.TransitionNotFound)
}

// Instances of a version that does not begin any more, or not yet, hear as before.
func TestMessages_NewerVersionInstances(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), running(trunks(1), trunks(2)))
	consumed(t, e, fromDepot("1", "arrived", "L-1"))
	require.NoError(t, e.Admin().BeginVersion(t.Context(), "trunk", 1, "ann"))
	consumed(t, e, fromDepot("2", "scanned", "L-1"))
	consumed(t, e, fromDepot("3", "arrived", "L-2"))
	inst, err := e.Read().Instance(t.Context(), "", transitions.InstanceID(transitions.DefaultTenant, "trunk", "L-2"))
	assert.Truef(t, err == nil && inst.Definition == 1, "%+v, %v", inst, err)
	wantCode(t, errOf(e.Consume(t.Context(), fromDepot("4", "scanned", "L-2"))), workflow.TransitionNotFound) // version 1 has none
	consumed(t, e, fromDepot("5", "left", "L-1"))
	wantDead(t, e, "4 waiting transition_not_found 1")
}
