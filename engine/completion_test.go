package engine_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// wards is the data of a parent: how many completions of its children it has taken.
type wards struct {
	Ended int `json:"ended"`
}

// guardians start kids, and take their completions in state "open" of version 1, if that has the transition, and of version 2.
func guardians(version int, takes bool) *workflow.Definition[wards] {
	noop := nothing[wards, workflow.None]
	parts := []workflow.Part[wards]{
		workflow.Start("open", "open", noop),
		workflow.On("bear", workflow.From("open"), workflow.Stay, func(c *workflow.Call, _ *wards, l litter) error {
			for range l.N {
				c.Spawn(workflow.Child{Workflow: "kid", Transition: "born", End: "ended"})
			}
			return nil
		}),
		workflow.On("close", workflow.From("open"), "closed", noop),
		workflow.On("reopen", workflow.From("closed"), "open", noop),
		workflow.On("finish", workflow.From("open", "closed"), "done", noop),
	}
	if takes {
		parts = append(parts, workflow.On("ended", workflow.From("open"), workflow.Stay,
			func(_ *workflow.Call, d *wards, _ workflow.Ended[struct{}]) error { d.Ended++; return nil }))
	}
	d := workflow.Define("guardian", version, parts...).Final("done")
	if version == 2 {
		d.Migrate(workflow.FromVersion[wards, wards](1, nil))
	}
	return d
}

// guard starts a parent with n children.
func guard(t *testing.T, e *engine.Engine, n int) (id uuid.UUID, kids []transitions.Instance) {
	t.Helper()
	id = submit(t, e, transitions.Command{Workflow: "guardian", Transition: "open", Key: uuid.NewString()}).Instance
	bear := transitions.Command{Workflow: "guardian", Transition: "bear", Key: "bear", Instance: id, Payload: fmt.Appendf(nil, `{"n":%d}`, n)}
	submit(t, e, bear)
	kids, _ = children(t, e, inspect.ChildFilter{Parent: id})
	return id, kids
}

// steps are the names of an instance's transitions.
func steps(t *testing.T, e *engine.Engine, id uuid.UUID) (names []string) {
	t.Helper()
	list, err := e.Read().History(t.Context(), "", id, 0, 1000)
	require.NoError(t, err)
	for _, entry := range list {
		names = append(names, entry.Transition)
	}
	return names
}

// eventuallySteps waits for the transitions of an instance.
func eventuallySteps(t *testing.T, e *engine.Engine, id uuid.UUID, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprint("the steps are ", want), func() bool { return slices.Equal(steps(t, e, id), want) })
}

// advance does a transition of an instance without a payload, once.
func advance(t *testing.T, e *engine.Engine, workflow, transition string, id uuid.UUID) {
	t.Helper()
	submit(t, e, transitions.Command{Workflow: workflow, Transition: transition, Instance: id, Key: uuid.NewString()})
}

func TestCompletionIsKeptAndDelivered(t *testing.T) {
	t.Parallel()
	pool, e := started(t, flows(kid, guardians(1, true)))
	id, kids := guard(t, e, 2)
	advance(t, e, "guardian", "close", id)
	advance(t, e, "kid", "die", kids[0].ID)
	eventuallySteps(t, e, id, "open", "bear", "close", "ended.deferred")
	assert.Equal(t, 1, query[int](t, pool, "SELECT count(*)::int FROM pawl.command WHERE instance = $1 AND run_at > now()", id),
		"commands wait, want 1")
	advance(t, e, "guardian", "reopen", id)
	eventuallySteps(t, e, id, "open", "bear", "close", "ended.deferred", "reopen", "ended")
	advance(t, e, "guardian", "finish", id)
	advance(t, e, "kid", "die", kids[1].ID)
	eventuallySteps(t, e, id, "open", "bear", "close", "ended.deferred", "reopen", "ended", "finish", "ended.not_taken")
	inst, err := e.Read().Instance(t.Context(), "", id)
	assert.Truef(t, err == nil && inst.State == "done" && inst.Links.Deferred == nil, "%+v, %v", inst, err)
	sound(t, e, pool)
}

// A completion that a version does not know is delivered after the migration to one that does.
func TestCompletionIsDeliveredAfterMigration(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), flows(kid, guardians(1, false), guardians(2, true)))
	require.NoError(t, e.Admin().BeginVersion(t.Context(), "guardian", 1, "ann"))
	id, kids := guard(t, e, 1)
	advance(t, e, "kid", "die", kids[0].ID)
	eventuallySteps(t, e, id, "open", "bear", "ended.deferred")
	operate(t, e, transitions.Command{Instance: id, Key: "m", Actor: "ann"}, transitions.Operation{Action: transitions.Migrate, To: 2})
	eventuallySteps(t, e, id, "open", "bear", "ended.deferred", "pawl.migrated", "ended")
	wantIntact(t, e, "")
}

// Children end while their parent opens and closes, on two nodes.
func TestCompletionsAndChangesOfTheirParentRace(t *testing.T) {
	t.Parallel()
	pool := database(t)
	nodes := []*engine.Engine{newEngine(t, pool, flows(kid, guardians(1, true))), newEngine(t, pool, flows(kid, guardians(1, true)))}
	const n = 60
	id, kids := guard(t, nodes[0], n)
	var all sync.WaitGroup
	all.Go(func() {
		for i := range 20 {
			advance(t, nodes[i%2], "guardian", "close", id)
			advance(t, nodes[(i+1)%2], "guardian", "reopen", id)
		}
	})
	for i := range 3 {
		all.Go(func() {
			for j := i; j < n; j += 3 {
				advance(t, nodes[j%2], "kid", "die", kids[j].ID)
			}
		})
	}
	all.Wait()
	eventually(t, "every completion is taken", func() bool {
		inst, err := nodes[0].Read().Instance(t.Context(), "", id)
		return err == nil && string(inst.Data) == fmt.Sprintf(`{"ended":%d}`, n) && inst.Links.Deferred == nil
	})
	sound(t, nodes[0], pool)
}
