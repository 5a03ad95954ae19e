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
	parts := []workflow.Part[letterData]{
		workflow.Start("import", "open", write).BusinessKey(func(p text) string { return p.Number }),
		workflow.On("close", workflow.From("open"), "closed", nothing[letterData, workflow.None]),
	}
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

// Whatever a name is in the version that new instances begin with: in that of the instance it is what that says, before its migration
// and after it, and what was done is answered as it was.
func TestMigration_StartBecomesTransition(t *testing.T) {
	t.Parallel()
	for was := range 3 {
		for is := range 3 {
			t.Run(fmt.Sprintf("%d to %d", was, is), func(t *testing.T) {
				t.Parallel()
				started, moved := func(n int) bool { return n != 1 }, func(n int) bool { return n != 0 }
				pool := database(t)
				e := newEngine(t, pool, running(desk(1, started(was), moved(was)),
					desk(2, started(is), moved(is), workflow.FromVersion[letterData, letterData](1, nil))))
				ids := map[int]uuid.UUID{}
				var done []transitions.Command
				var answers []string
				do := func(c transitions.Command) transitions.Receipt {
					r := submit(t, e, c)
					done, answers = append(done, c), append(answers, string(r.Body))
					return r
				}
				moves := func(version int, key string) {
					byID, byNumber := ofDesk("write", fmt.Sprint(version), key+"-id"), ofDesk("write", fmt.Sprint(version), key+"-number")
					byID.Instance, byNumber.BusinessKey = ids[version], fmt.Sprint(version)
					do(byID)
					do(byNumber)
				}
				for begins := 1; begins <= 2; begins++ {
					require.NoError(t, e.Admin().BeginVersion(t.Context(), "desk", begins, ""))
					ids[begins] = do(ofDesk("import", fmt.Sprint(begins), fmt.Sprint("i-", begins))).Instance
					if started([]int{was, is}[begins-1]) {
						do(ofDesk("write", fmt.Sprint("w-", begins), fmt.Sprint("w-", begins)))
					}
				}
				for begins := 2; begins >= 1; begins-- {
					require.NoError(t, e.Admin().BeginVersion(t.Context(), "desk", begins, ""))
					for version, n := range []int{was, is} {
						if moved(n) {
							moves(version+1, fmt.Sprint("begins-", begins))
						}
					}
				}
				r, err := migrateOne(t, e, ids[1], "m")
				require.Truef(t, err == nil && r.Err() == nil, "%+v, %v", r, err)
				for begins := 1; begins <= 2; begins++ {
					require.NoError(t, e.Admin().BeginVersion(t.Context(), "desk", begins, ""))
					if moved(is) {
						moves(1, fmt.Sprint("migrated-", begins))
					}
					for i, c := range done {
						if r, err := e.Submit(t.Context(), c); err != nil || !r.Replayed || string(r.Body) != answers[i] {
							t.Errorf("%s, where %d begins: %s, %v\nfirst %s", c.Key, begins, r.Body, err, answers[i])
						}
					}
				}
				wantIntact(t, e, "")
			})
		}
	}
}

// A node that knows the name only as a start does not finally refuse it as a transition of another version.
func TestAStartHereMayBeATransitionOfANewerVersion(t *testing.T) {
	t.Parallel()
	pool := database(t)
	old, next := newEngine(t, pool, running(desk(1, true, false))), newEngine(t, pool, running(desk(2, true, true)))
	id := submit(t, next, ofDesk("import", "1", "i")).Instance
	c := ofDesk("write", "1", "w")
	c.Instance = id
	_, err := old.Submit(t.Context(), c)
	wantCode(t, err, workflow.NotOnThisNode)
	_, err = old.DryRun(t.Context(), c)
	wantCode(t, err, workflow.NotOnThisNode)
	submit(t, next, c)
	c.Instance, c.Key = submit(t, old, ofDesk("import", "2", "i2")).Instance, "x"
	_, err = old.Submit(t.Context(), c)
	wantCode(t, err, workflow.InvalidRequest)
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
			_, err := e.Submit(t.Context(), by(actor, "approve", id))
			wantCode(t, err, workflow.SeparationOfDuties)
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
