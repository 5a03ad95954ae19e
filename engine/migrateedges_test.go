package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// An instance has left an activity that is still in flight, and migrates to a version without that activity. The caller gets an answer.
func TestMigration_RemovedActivity(t *testing.T) {
	t.Parallel()
	for _, tries := range []int{1, 2} { // the second attempt begins after the migration
		pool := database(t)
		going, goOn := make(chan struct{}, 10), make(chan struct{})
		v1 := workflow.Define("claim", 1,
			workflow.Start("file", "open", nothing[claim1, filed]),
			workflow.Do("pay", workflow.From("open"), "paying", "paid", claimWork[claim1](func(context.Context) error {
				going <- struct{}{}
				<-goOn
				if tries > 1 {
					return errors.New("the bank does not answer")
				}
				return nil
			}), nothing[claim1, int]).OrElse("open", nothing[claim1, workflow.Failure]).Retry(workflow.Retry{First: time.Millisecond}),
			workflow.On("call-off", workflow.From("paying"), "open", nothing[claim1, workflow.None])).Final("paid")
		v2 := workflow.Define("claim", 2,
			workflow.Start("file", "open", nothing[claim1, filed]),
			workflow.On("settle", workflow.From("open"), "paid", nothing[claim1, workflow.None])).Final("paid").
			Migrate(workflow.FromVersion[claim1, claim1](1, nil))
		e := bothClaims(t, pool, v1, v2)
		id := file(t, e, "", "1", 1).Instance
		work := submit(t, e, onClaim(id, "pay", "p"))
		<-going
		submit(t, e, onClaim(id, "call-off", "c"))
		r, err := migrateOne(t, e, id, "m")
		require.Truef(t, err == nil && r.Err() == nil, "%+v, %v", r, err)
		close(goOn)
		answer, err := e.Await(t.Context(), transitions.Ref{Scope: work.Record.Scope, Key: "p"})
		assert.Truef(t, err == nil && workflow.CodeOf(answer.Err()) == workflow.CommandCancelled, "%d: %+v, %v", tries, answer, err)
		wantIntact(t, e, "")
	}
}

// record is what is logged.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

func (r *record) has(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(r.text.String(), text)
}

// Whatever a plan's code makes of an instance, the migration ends, and tells why.
func TestMigration_PlanErrors(t *testing.T) {
	t.Parallel()
	pool := database(t)
	plan := func(old claim1) (claimName, error) {
		switch old.Sum {
		case 1:
			panic("the secret of the panic")
		case 2:
			return claimName{"a\x00b"}, nil
		case 3:
			return claimName{"a\xffb"}, nil
		case 4:
			return claimName{strings.Repeat("x", 2000)}, nil
		case 5:
			return claimName{}, errors.New("it says \xff\x00 " + strings.Repeat("long ", 100_000))
		case 6:
			return claimName{}, workflow.Errorf(workflow.Unavailable, "not now")
		}
		return claimName{fmt.Sprint(old.Sum)}, nil
	}
	v2 := workflow.Define("claim", 2, workflow.Start("file", "open", nothing[claimName, filed]),
		workflow.On("hold", workflow.From("open"), "held", nothing[claimName, workflow.None]),
		workflow.On("drop", workflow.From("open", "held"), "dropped", nothing[claimName, workflow.None])).Final("dropped").MaxData(1000).
		Attr("name", func(n claimName) string {
			if n.Name == "7" {
				return "a\x00b"
			}
			return n.Name
		}).Migrate(workflow.FromVersion(1, plan).DropTimer("nag").DropTimer("release"))
	exec(t, pool, "ALTER TABLE pawl.instance ADD CHECK (attributes->>'name' <> '8')") // nobody can tell before
	var log record
	e := newEngine(t, pool, running(claims1(pays), v2), func(c *engine.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	require.NoError(t, e.Admin().BeginVersion(t.Context(), "claim", 1, ""))
	const all = 10
	for i := range all {
		file(t, e, "", fmt.Sprint(i), i)
	}
	preview, err := e.Admin().PreviewMigration(t.Context(), "claim", 1, 2)
	if err != nil || preview.States[0].Rejected != 7 || !log.has("the code of a plan fails") { // what the database refuses it cannot tell
		t.Errorf("%+v, %v", preview.States, err)
	}
	m := migrated(t, e, begun(t, e, 1000).ID)
	assert.Truef(t, m.Migrated == 2 && m.Rejected == 8 && m.Skipped == 0, "%+v", m)
	for _, want := range []string{"the plan's code failed", "contains a NUL", "cannot be encoded", "allows 1000", "it says  long", "not now",
		"could not be stored"} {
		found := false
		for _, r := range m.Refusals {
			found = found || strings.Contains(r.Reason, want) && len(r.Reason) <= transitions.MaxReason && !strings.Contains(r.Reason, "secret")
		}
		assert.Truef(t, found, "no refusal says %q", want)
	}
	assert.True(t, log.has("the secret of the panic") && log.has(`transition=migrate`), "the log does not say what the panic was")
	wantIntact(t, e, "")
}

type claimName struct {
	Name string `json:"name"`
}

// All nodes with the plan are gone, one of them during its work. An operator can end the migration, so that another can start.
func TestMigration_StopWithoutPlan(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := bothClaims(t, pool)
	old := newEngine(t, pool, running(claims1(pays)))
	file(t, e, "", "1", 1)
	m := begun(t, e, 1000)
	e.Stop(t.Context())
	left := func(ago string) {
		exec(t, pool, `UPDATE pawl.instance_migration SET page = '[]', claimed_by = 'gone', claimed_at = now(),
			locked_until = clock_timestamp() - $2::text::interval WHERE id = $1`, m.ID, ago)
	}
	left("1 second")
	if m, err := old.Admin().StopMigration(t.Context(), m.ID, "", ""); err != nil || m.StoppedAt.IsZero() || !m.EndedAt.IsZero() {
		t.Errorf("its node may be back in a moment: %+v, %v", m, err)
	}
	left("2 minutes")
	if m, err := old.Admin().StopMigration(t.Context(), m.ID, "", ""); err != nil || m.EndedAt.IsZero() || m.Node != "" {
		t.Errorf("%+v, %v", m, err)
	}
}

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
