package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The meaning of a transition's name in one version and in the other.

// letterData is the data of a desk's case.
type letterData struct {
	Texts int `json:"texts"`
}

type text struct {
	Number string `json:"number"`
}

func write(_ *workflow.Call, d *letterData, _ text) error { d.Texts++; return nil }

// desk is a version in which "write" is a start, a transition, or both.
func desk(version int, start, move bool, plans ...workflow.Plan[letterData]) *workflow.Definition[letterData] {
	parts := []workflow.Part[letterData]{workflow.Start("import", "open", write).BusinessKey(func(p text) string { return p.Number }),
		workflow.On("close", workflow.From("open"), "closed", nothing[letterData, workflow.None])}
	if start {
		parts = append(parts, workflow.Start("write", "open", write).BusinessKey(func(p text) string { return p.Number }))
	}
	if move {
		parts = append(parts, workflow.On("write", workflow.From("open"), workflow.Stay, write))
	}
	return workflow.Define("desk", version, parts...).Final("closed").Migrate(plans...)
}

func ofDesk(transition, number, key string) transitions.Command {
	return transitions.Command{Workflow: "desk", Transition: transition, Key: key, Actor: "ann",
		Payload: fmt.Appendf(nil, `{"number":%q}`, number)}
}

// A node that knows the name only as a start does not finally refuse it as a transition of another version.
func TestAStartHereMayBeATransitionOfANewerVersion(t *testing.T) {
	t.Parallel()
	pool := database(t)
	old, next := newEngine(t, pool, running(desk(1, true, false))), newEngine(t, pool, running(desk(2, true, true)))
	id := submit(t, next, ofDesk("import", "1", "i")).Instance
	c := ofDesk("write", "1", "w")
	c.Instance = id
	wantCode(t, errOf(old.Submit(t.Context(), c)), workflow.NotOnThisNode)
	wantCode(t, errOf(old.DryRun(t.Context(), c)), workflow.NotOnThisNode)
	submit(t, next, c)
	c.Instance, c.Key = submit(t, old, ofDesk("import", "2", "i2")).Instance, "x"
	wantCode(t, errOf(old.Submit(t.Context(), c)), workflow.InvalidRequest)
}

// approvals is a version in which the author and the last reviewer may not approve. A review takes time.
func approvals(version int, writes, checks string, plans ...workflow.Plan[letterData]) *workflow.Definition[letterData] {
	return workflow.Define("desk", version,
		workflow.Start("begin", "open", nothing[letterData, workflow.None]),
		workflow.On(writes, workflow.From("open"), workflow.Stay, nothing[letterData, workflow.None]),
		workflow.Do(checks, workflow.From("open"), "checking", "open", claimWork[letterData](pays), nothing[letterData, int]).
			OrElse("open", nothing[letterData, workflow.Failure]),
		workflow.On("approve", workflow.From("open"), "closed", nothing[letterData, workflow.None]).NotBy(writes).NotByLast(checks)).
		Final("closed").Migrate(plans...)
}

// The actor of the first version is excluded in the second, and in the third, which renames the transition.
func TestMigration_KeepsNotBy(t *testing.T) {
	t.Parallel()
	pool := database(t)
	same := func(from int) *workflow.FromVersionPlan[letterData, letterData] {
		return workflow.FromVersion[letterData, letterData](from, nil)
	}
	e := newEngine(t, pool, running(approvals(1, "write", "check"), approvals(2, "write", "check", same(1)),
		approvals(3, "draft", "look-over", same(2).Transition("write", "draft").Transition("check", "look-over"))))
	require.NoError(t, e.Admin().BeginVersion(t.Context(), "desk", 1, ""))
	by := func(actor, transition string, id uuid.UUID) transitions.Command {
		return transitions.Command{Workflow: "desk", Transition: transition, Key: uuid.NewString(), Actor: actor, Instance: id}
	}
	id := submit(t, e, by("eve", "begin", uuid.Nil)).Instance
	check := func(actor, name string) {
		c := by(actor, name, id)
		r := submit(t, e, c)
		if r, err := e.Await(t.Context(), transitions.Ref{Scope: r.Record.Scope, Key: c.Key}); err != nil || r.Err() != nil {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	excluded := func(actors ...string) {
		t.Helper()
		for _, actor := range actors {
			wantCode(t, errOf(e.Submit(t.Context(), by(actor, "approve", id))), workflow.SeparationOfDuties)
		}
	}
	submit(t, e, by("ann", "write", id))
	check("bob", "check")
	check("cid", "check")
	for to := 2; to <= 3; to++ {
		toVersion(t, e, id, to)
		excluded("ann", "cid")
		r, err := e.DryRun(t.Context(), by("bob", "approve", id))
		assert.Truef(t, err == nil && r.Err() == nil, "version %d excludes who checked before the last one: %+v, %v", to, r, err)
	}
	submit(t, e, by("dan", "draft", id))
	check("bob", "look-over")
	excluded("ann", "dan", "bob")
	submit(t, e, by("cid", "approve", id))
	wantIntact(t, e, "")
}
