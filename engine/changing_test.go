package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/testlog"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// What docs/changing-a-workflow.md states, where no other test runs it.

// moves are removals. While goods are insured, a child workflow drives them. Version 2 renames "insured" to "covered".
type moves struct {
	broken  atomic.Bool  // what is to be undone cannot be
	refunds atomic.Int32 // by version 2
}

type move struct {
	By int `json:"by"` // the version by which the drive's end was taken
}

func (m *moves) version(version int) *workflow.Definition[move] {
	secured := workflow.State("insured")
	if version == 2 {
		secured = "covered"
	}
	failed := nothing[move, workflow.Failure]
	work := func(err error) func(context.Context, *workflow.Attempt, move, workflow.None) (workflow.None, error) {
		return func(context.Context, *workflow.Attempt, move, workflow.None) (workflow.None, error) {
			return workflow.None{}, err
		}
	}
	return workflow.Define("move", version,
		workflow.Start("order", "ordered", func(c *workflow.Call, _ *move, _ workflow.None) error {
			c.Spawn(workflow.Child{Workflow: "drive", Transition: "set_off", End: "unload"})
			return nil
		}),
		workflow.Do("insure", workflow.From("ordered"), "insuring", secured, work(nil), nothing[move, workflow.None]).OrElse("ordered", failed).
			Undo(func(context.Context, *workflow.Attempt, move, workflow.None, *workflow.None) error {
				if m.broken.Load() {
					return errors.New("the insurer is down")
				}
				m.refunds.Add(int32(version - 1))
				return nil
			}).Retry(workflow.Retry{First: time.Hour}),
		workflow.On("unload", workflow.From(secured), workflow.Stay, func(_ *workflow.Call, d *move, _ workflow.Ended[struct{}]) error {
			d.By = version
			return nil
		}),
		workflow.On("note", workflow.From(secured), workflow.Stay, nothing[move, workflow.None]),
		workflow.Do("deliver", workflow.From(secured), "delivering", "delivered", work(workflow.Final(errors.New("it is lost"))),
			nothing[move, workflow.None]).OrElse("lost", failed).Undoes("insure"),
	).Final("delivered", "lost").After("remind", workflow.From(secured), time.Hour, "note").
		Migrate(workflow.FromVersion[move, move](3-version, nil).State(map[int]workflow.State{1: "covered", 2: "insured"}[version], secured))
}

func drives() workflow.Source {
	return workflow.Define("drive", 1, workflow.Start("set_off", "driving", nothing[struct{}, workflow.None]),
		workflow.On("arrive", workflow.From("driving"), "arrived", nothing[struct{}, workflow.None])).Final("arrived")
}

// insured is a removal whose goods are insured, and its drive.
func insured(t *testing.T, pool *pgxpool.Pool, e *engine.Engine, key string) (id, drive uuid.UUID) {
	t.Helper()
	id = submit(t, e, transitions.Command{Workflow: "move", Transition: "order", Key: key}).Instance
	r := submit(t, e, ofMove(id, "insure"))
	require.NoError(t, errOf(e.Await(t.Context(), transitions.Ref{Scope: r.Record.Scope, Key: "insure"})))
	return id, query[uuid.UUID](t, pool, "SELECT id FROM pawl.instance WHERE workflow = 'drive' ORDER BY created_at DESC, id LIMIT 1")
}

func ofMove(id uuid.UUID, transition string) transitions.Command {
	return transitions.Command{Workflow: "move", Transition: transition, Key: transition, Instance: id}
}

func toVersion(t *testing.T, e *engine.Engine, id uuid.UUID, version int) {
	t.Helper()
	operate(t, e, transitions.Command{Instance: id, Key: fmt.Sprint("to ", version)},
		transitions.Operation{Action: transitions.Migrate, To: version})
}

func TestAnAttributeComesWithTheNextTransition(t *testing.T) {
	t.Parallel()
	pool, without := started(t, running(lettersOf(func(d *olderLetter) { d.Text = "old" }, func(*olderLetter) {})))
	id := submit(t, without, transitions.Command{Workflow: "letter", Transition: "write", Key: "w"}).Instance
	with := newEngine(t, pool, running(lettersOf(func(*olderLetter) {}, func(*olderLetter) {}).Attr("text",
		func(d olderLetter) string { return d.Text })))
	for _, want := range []string{"", "old"} {
		inst, err := with.Read().Instance(t.Context(), "", id)
		assert.Truef(t, err == nil && inst.Attributes["text"] == want, "%+v, %v; want %q", inst, err, want)
		submit(t, with, transitions.Command{Workflow: "letter", Transition: "step", Key: "step" + want, Instance: id})
	}
}

// What is in flight of a version that a node does not know stays as it is there; what is to be read, it reads.
func TestOtherVersionsTimersAndUndos(t *testing.T) {
	t.Parallel()
	pool := database(t)
	m := &moves{}
	m.broken.Store(true)
	newer := newEngine(t, pool, running(m.version(1), m.version(2), drives()))
	waits, _ := insured(t, pool, newer, "waits")
	lost, _ := insured(t, pool, newer, "lost")
	r := submit(t, newer, ofMove(lost, "deliver"))
	_, err := newer.Await(t.Context(), transitions.Ref{Scope: r.Record.Scope, Key: "deliver"})
	require.NoError(t, err)
	eventually(t, "the undo is to be repeated", func() bool {
		return query[int](t, pool, "SELECT count(*) FROM pawl.command WHERE phase = 'undoing' AND failures = 1 AND run_at > now()") == 1
	})
	newer.Stop(context.Background())
	m.broken.Store(false)

	old := newEngine(t, pool, running(m.version(1), drives()))
	own, _ := insured(t, pool, old, "own")
	const tries = `SELECT coalesce(sum(attempt), 0)::int FROM pawl.command WHERE definition = 2 AND phase IS NOT NULL`
	before := query[int](t, pool, tries)
	exec(t, pool, `UPDATE pawl.command SET run_at = now() - interval '1 minute' WHERE run_at > now() AND phase IS NOT NULL`)
	versionOf := func(e *engine.Engine, id uuid.UUID) int64 {
		inst, err := e.Read().Instance(t.Context(), "", id)
		require.NoError(t, err)
		return inst.Version
	}
	eventually(t, "its own timer fires", func() bool { return versionOf(old, own) == 4 })
	if after := query[int](t, pool, tries); after != before || versionOf(old, waits) != 3 || m.refunds.Load() != 0 {
		t.Errorf("of a version that it does not know: %d tries, and %d before; version %d, %d undos", after, before, versionOf(old, waits),
			m.refunds.Load())
	}
	list, err := old.Read().Instances(t.Context(), inspect.Filter{Workflow: "move"})
	assert.Truef(t, err == nil && len(list.Instances) == 3, "it lists %+v, %v", list, err)
	wantCode(t, errOf(old.Read().Explain(t.Context(), "", waits, "ann", nil)), workflow.NotOnThisNode)

	again := newEngine(t, pool, running(m.version(1), m.version(2), drives()))
	eventually(t, "another node does it", func() bool { return versionOf(again, waits) == 4 && m.refunds.Load() == 1 })
	wantIntact(t, again, "")
}

func TestAnOldNodeIgnoresWhatItsVersionIgnores(t *testing.T) {
	t.Parallel()
	pool := database(t)
	ignoring := func(version int) workflow.Source {
		take := nothing[trunk, scanNotice]
		parts := []workflow.Part[trunk]{workflow.Start("arrive", "here", take).
			Receive("depot", workflow.JSON(func(workflow.Message, scanNotice) (workflow.Address, scanNotice, error) {
				return workflow.Address{}, scanNotice{}, workflow.ErrIgnored
			}))}
		if version > 1 {
			parts = append(parts, workflow.On("look", workflow.From("here"), workflow.Stay, take))
		}
		return workflow.Define("trunk", version, append(parts, workflow.On("leave", workflow.From("here"), "gone", take))...).Final("gone")
	}
	old := newEngine(t, pool, running(ignoring(1)))
	newEngine(t, pool, running(ignoring(1), ignoring(2)))
	r := consumed(t, old, fromDepot("m", "noise", "L-1"))
	assert.Equalf(t, `{"ignored":true}`, string(r.Body), "%+v", r)
	wantDead(t, old)
}

func TestIncompletePlanStopsStart(t *testing.T) {
	t.Parallel()
	open := claims2(pays, func(p *workflow.FromVersionPlan[claim1, claim2]) { p.State("held", "nowhere").Carry("fly") })
	_, err := engine.New(engine.Config{Pool: database(t), Workflows: []workflow.Source{claims1(pays), open}})
	mistakes, is := errors.AsType[*workflow.Mistakes](err)
	require.True(t, is && len(mistakes.List) >= 2, err)
	for _, want := range []string{`takes state "held" to "nowhere", which version 2 does not have`, `carries activity "fly"`} {
		assert.Containsf(t, err.Error(), want, "in %v", err)
	}
}

// Children, what is to be undone and commands for later stay with an instance that is migrated, and are the new version's.
func TestMigration_MovesCommands(t *testing.T) {
	t.Parallel()
	pool := database(t)
	m := &moves{}
	e := newEngine(t, pool, running(m.version(1), m.version(2), drives()))
	require.NoError(t, e.Admin().BeginVersion(t.Context(), "move", 1, ""))
	id, drive := insured(t, pool, e, "m")
	later := ofMove(id, "note")
	later.NotBefore = time.Now().Add(time.Hour)
	planned, err := e.Submit(t.Context(), later)
	require.NoError(t, err)
	toVersion(t, e, id, 2)
	exec(t, pool, "UPDATE pawl.command SET run_at = now() WHERE key = 'note'")
	r, err := e.Await(t.Context(), transitions.Ref{Scope: planned.Record.Scope, Key: "note"})
	assert.Truef(t, err == nil && r.Err() == nil, "%+v, %v", r, err)
	submit(t, e, transitions.Command{Workflow: "drive", Transition: "arrive", Key: "a", Instance: drive})
	eventually(t, "the end of the drive is taken", func() bool {
		inst, err := e.Read().Instance(t.Context(), "", id)
		return err == nil && string(inst.Data) == `{"by":2}`
	})
	submit(t, e, ofMove(id, "deliver"))
	eventually(t, "the insurance is paid back", func() bool { return m.refunds.Load() == 1 })
	inst, err := e.Read().Instance(t.Context(), "", id)
	assert.Truef(t, err == nil && inst.State == "lost", "%+v, %v", inst, err)
	wantIntact(t, e, "")
}

// A busy machine makes it slower, and nothing makes it faster.
func TestAMigrationIsNoFasterThanItsRate(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := bothClaims(t, pool)
	const all, rate = 60, 50
	for i := range all {
		file(t, e, "", fmt.Sprint(i), 1)
	}
	since := time.Now()
	m := migrated(t, e, begun(t, e, rate).ID)
	assert.Equalf(t, int64(all), m.Migrated, "%+v", m)
	took := time.Since(since)
	assert.Truef(t, took >= all*time.Second/rate-time.Second/2, "%d were taken in %s, and in a second %d may be", all, took, rate)
}

// The end of a child that is corrected into its end is told to its parent, and nothing more becomes of it.
func TestACorrectionIntoAFinalStateIsAnEnd(t *testing.T) {
	t.Parallel()
	pool, e := started(t, running((&moves{}).version(2), drives()))
	id, drive := insured(t, pool, e, "m")
	correct := func(key string) transitions.Receipt {
		r, err := e.Admin().Operate(t.Context(), transitions.Command{Instance: drive, Key: key},
			transitions.Operation{Action: transitions.Correct, State: "arrived", Reason: "the driver called"})
		require.NoError(t, err)
		return r
	}
	require.NoError(t, correct("a").Err())
	eventually(t, "the parent hears of it", func() bool {
		inst, err := e.Read().Instance(t.Context(), "", id)
		return err == nil && string(inst.Data) == `{"by":2}`
	})
	r := correct("b")
	assert.Equalf(t, workflow.CorrectionRefused, workflow.CodeOf(r.Err()), "what has ended is corrected: %+v", r)
	wantIntact(t, e, "")
}

func TestANodeWarnsOfAVersionThatItIsNotGiven(t *testing.T) {
	t.Parallel()
	pool := database(t)
	id := packed(t, newEngine(t, pool, running(crates(1))), "1").Instance
	log := &testlog.Log{}
	e := newEngine(t, pool, running(crates(2)), func(c *engine.Config) { c.Log = slog.New(log) })
	assert.Truef(t, log.Count("ran here before and is not given") == 1 && log.Count("version=1") != 0, "%q", log.List())
	inst, err := e.Read().Instance(t.Context(), "", id)
	assert.Truef(t, err == nil && inst.State == "packed", "%+v, %v", inst, err)
	rows, err := e.Read().History(t.Context(), "", id, 0, 10)
	assert.Truef(t, err == nil && len(rows) == 1, "%+v, %v", rows, err)
}
