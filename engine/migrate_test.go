package engine_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The workflow of these tests: a claim. Version 2 counts in cents, has "checking" and "approved" for "open", and holds for two days.

type claim1 struct {
	Sum int `json:"sum"`
}

type claim2 struct {
	Cents int `json:"cents"`
}

type filed struct {
	Sum int `json:"sum"`
}

func claimWork[D any](do func(context.Context) error) func(context.Context, *workflow.Attempt, D, workflow.None) (int, error) {
	return func(ctx context.Context, _ *workflow.Attempt, _ D, _ workflow.None) (int, error) { return 7, do(ctx) }
}

func nothing[D, P any](*workflow.Call, *D, P) error { return nil }

func claims1(pay func(context.Context) error) *workflow.Definition[claim1] {
	return workflow.Define("claim", 1,
		workflow.Start("file", "open", func(_ *workflow.Call, d *claim1, p filed) error { d.Sum = p.Sum; return nil }),
		workflow.On("hold", workflow.From("open"), "held", nothing[claim1, workflow.None]),
		workflow.On("release", workflow.From("held"), "open", nothing[claim1, workflow.None]),
		workflow.On("nag", workflow.From("open"), workflow.Stay, nothing[claim1, workflow.None]),
		workflow.On("drop", workflow.From("open"), "dropped", nothing[claim1, workflow.None]),
		workflow.Do("pay", workflow.From("open"), "paying", "paid", claimWork[claim1](pay), nothing[claim1, int]).
			OrElse("open", nothing[claim1, workflow.Failure])).Final("paid", "dropped").After("nag", workflow.From("open"), time.Hour, "nag").
		After("release", workflow.From("held"), 24*time.Hour, "release")
}

func claims2(pay func(context.Context) error, change ...func(*workflow.FromVersionPlan[claim1, claim2])) *workflow.Definition[claim2] {
	plan := workflow.FromVersion(1, func(old claim1) (claim2, error) {
		if old.Sum < 0 {
			return claim2{}, errors.New("the sum is negative")
		}
		return claim2{Cents: 100 * old.Sum}, nil
	}).State("open", "checking").DropTimer("nag").KeepTimer("release")
	for _, c := range change {
		c(plan)
	}
	return workflow.Define("claim", 2,
		workflow.Start("file", "checking", func(_ *workflow.Call, d *claim2, p filed) error { d.Cents = 100 * p.Sum; return nil }),
		workflow.On("hold", workflow.From("checking"), "held", nothing[claim2, workflow.None]),
		workflow.On("release", workflow.From("held"), "checking", nothing[claim2, workflow.None]),
		workflow.On("approve", workflow.From("checking"), "approved", nothing[claim2, workflow.None]),
		workflow.Do("pay", workflow.From("approved"), "settling", "paid", claimWork[claim2](pay),
			func(_ *workflow.Call, d *claim2, result int) error {
				d.Cents += result
				return nil
			}).OrElse("approved", nothing[claim2, workflow.Failure])).Final("paid").After("release", workflow.From("held"), 48*time.Hour, "release").
		Attr("large", func(d claim2) string { return map[bool]string{true: "yes"}[d.Cents > 1000] }).Migrate(plan)
}

func pays(context.Context) error { return nil }

// heldWork says on going that it has begun, and ends when goOn is closed.
func heldWork() (work func(context.Context) error, going, goOn chan struct{}) {
	going, goOn = make(chan struct{}, 10), make(chan struct{})
	return func(ctx context.Context) error {
		going <- struct{}{}
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return ctx.Err()
	}, going, goOn
}

// bothClaims begin with version 1.
func bothClaims(t *testing.T, pool *pgxpool.Pool, workflows ...workflow.Source) *engine.Engine {
	t.Helper()
	if len(workflows) == 0 {
		workflows = []workflow.Source{claims1(pays), claims2(pays)}
	}
	e := newEngine(t, pool, running(workflows...))
	require.NoError(t, e.Admin().BeginVersion(t.Context(), "claim", 1, ""))
	return e
}

func file(t *testing.T, e *engine.Engine, tenant, key string, sum int) transitions.Receipt {
	t.Helper()
	return submit(t, e, transitions.Command{Tenant: tenant, Workflow: "claim", Transition: "file", Key: key,
		Payload: fmt.Appendf(nil, `{"sum":%d}`, sum)})
}

func onClaim(id uuid.UUID, transition, key string) transitions.Command {
	return transitions.Command{Workflow: "claim", Transition: transition, Key: key, Instance: id}
}

func migrateOne(t *testing.T, e *engine.Engine, id uuid.UUID, key string) (transitions.Receipt, error) {
	t.Helper()
	return e.Admin().Operate(t.Context(), transitions.Command{Instance: id, Key: key, Actor: "ann"},
		transitions.Operation{Action: transitions.Migrate, To: 2, Reason: "all do"})
}

// wantIntact checks all chains of a tenant.
func wantIntact(t *testing.T, e *engine.Engine, tenant string) {
	t.Helper()
	v, err := e.Admin().Verify(t.Context(), tenant, uuid.Nil)
	assert.Truef(t, err == nil && len(v.Broken) == 0, "verify: %+v, %v", v.Broken, err)
}

func TestAnInstanceGoesOnByAnotherVersion(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := bothClaims(t, pool)
	first := file(t, e, "", "1", 20)
	id := first.Instance
	submit(t, e, onClaim(id, "hold", "h"))
	due := query[time.Time](t, pool, "SELECT run_at FROM pawl.command WHERE instance = $1 AND phase = 'scheduled'", id)
	later := onClaim(id, "approve", "later")
	later.NotBefore = time.Now().Add(72 * time.Hour)
	_, err := e.Submit(t.Context(), later)
	require.NoError(t, err)

	r, err := migrateOne(t, e, id, "m")
	require.Truef(t, err == nil && r.Err() == nil && r.Version == 3, "%+v, %v", r, err)
	inst, err := e.Read().Instance(t.Context(), "", id)
	assert.Truef(t, err == nil && inst.Definition == 2 && inst.State == "held" && string(inst.Data) == `{"cents":2000}` &&
		inst.Attributes["large"] == "yes", "%+v, %v", inst, err)
	rows, err := e.Read().History(t.Context(), "", id, 2, 10)
	assert.Truef(t, err == nil && len(rows) == 1 && rows[0].Transition == "pawl.migrated" &&
		string(rows[0].Payload) == `{"from":1,"to":2}` && rows[0].Actor == "ann" && rows[0].Reason == "all do" && rows[0].From == "held" &&
		rows[0].To == "held", "%+v, %v", rows, err)
	assert.Equal(t, 1, query[int](t, pool, "SELECT count(*) FROM pawl.outbox WHERE type = 'claim.pawl.migrated' AND instance = $1", id),
		"events")
	// What is in flight follows, and the timer fires when it was to fire.
	n := query[int](t, pool, "SELECT count(*) FROM pawl.command WHERE instance = $1 AND phase IS NOT NULL AND definition = 2", id)
	assert.Truef(t, n == 2, "%d commands in flight are on version 2, want 2", n)
	kept := query[time.Time](t, pool, "SELECT run_at FROM pawl.command WHERE instance = $1 AND starts_with(scope, 'pawl:timer')", id)
	assert.Truef(t, kept.Equal(due), "the timer is due at %s, and was at %s", kept, due)
	// Old keys answer as before, and so does this one.
	again := file(t, e, "", "1", 20)
	assert.Truef(t, again.Replayed && string(again.Body) == string(first.Body), "%s, then %s", first.Body, again.Body)
	repeated, err := migrateOne(t, e, id, "m")
	assert.Truef(t, err == nil && repeated.Replayed && string(repeated.Body) == string(r.Body), "%s, then %s, %v", r.Body, repeated.Body, err)
	// With another key nothing is left to do.
	other, err := migrateOne(t, e, id, "n")
	assert.Truef(t, err == nil && other.Err() == nil && other.Version == 0, "%+v, %v", other, err)
	submit(t, e, onClaim(id, "release", "r"))
	submit(t, e, onClaim(id, "approve", "a"))
	wantIntact(t, e, "")

	// The chain says on which version it was, and when.
	links := query[string](t, pool, "SELECT links::text FROM pawl.instance WHERE id = $1", id)
	for _, forged := range []string{"links = NULL", `links = '{"migrations":[{"version":2,"from":1}]}'`,
		`links = '{"migrations":[{"version":3,"from":2}]}'`, "definition = 1"} {
		exec(t, pool, "UPDATE pawl.instance SET "+forged+" WHERE id = $1", id)
		v, err := e.Admin().Verify(t.Context(), "", id)
		assert.Truef(t, err == nil && len(v.Broken) == 1, "%s: %+v, %v", forged, v, err)
		exec(t, pool, "UPDATE pawl.instance SET links = $2::text::json, definition = 2 WHERE id = $1", id, links)
	}
	wantIntact(t, e, "")
}

func TestMigration_Skips(t *testing.T) {
	t.Parallel()
	pool := database(t)
	pay, going, goOn := heldWork()
	e := bothClaims(t, pool, claims1(pay), claims2(pays))
	negative := file(t, e, "", "1", -1).Instance
	dropped := file(t, e, "", "2", 1).Instance
	submit(t, e, onClaim(dropped, "drop", "d"))
	for id, want := range map[uuid.UUID]string{negative: "the sum is negative", dropped: "has ended"} {
		r, err := migrateOne(t, e, id, "m")
		assert.Truef(t, err == nil && workflow.CodeOf(r.Err()) == workflow.MigrationRefused && strings.Contains(r.Err().Error(), want),
			"%+v, %v", r, err)
	}
	busy := file(t, e, "", "3", 1).Instance
	work := submit(t, e, onClaim(busy, "pay", "p"))
	<-going
	wantCode(t, errOf(migrateOne(t, e, busy, "m")), workflow.MigrationWaits)
	close(goOn)
	require.NoError(t, errOf(e.Await(t.Context(), transitions.Ref{Scope: work.Record.Scope, Key: "p"})))
	wantCode(t, errOf(e.Admin().Operate(t.Context(), transitions.Command{Instance: negative, Key: "x"},
		transitions.Operation{Action: transitions.Migrate, To: 3})), workflow.NotOnThisNode)
	wantCode(t, errOf(e.Admin().Operate(t.Context(), transitions.Command{Instance: negative, Key: "x"},
		transitions.Operation{Action: transitions.Migrate})), workflow.InvalidRequest)
	wantIntact(t, e, "")
}

// An activity that the plan keeps continues, and the new version takes its result.
func TestAnActivityInFlightIsCarried(t *testing.T) {
	t.Parallel()
	pool := database(t)
	pay, going, goOn := heldWork()
	e := bothClaims(t, pool, claims1(pay), claims2(pays, func(p *workflow.FromVersionPlan[claim1, claim2]) { p.Carry("pay") }))
	id := file(t, e, "", "1", 1).Instance
	work := submit(t, e, onClaim(id, "pay", "p"))
	<-going
	r, err := migrateOne(t, e, id, "m")
	require.Truef(t, err == nil && r.Err() == nil, "%+v, %v", r, err)
	inst, err := e.Read().Instance(t.Context(), "", id)
	assert.Truef(t, err == nil && inst.State == "settling" && inst.Links.InFlight != nil, "%+v, %v", inst, err)
	close(goOn)
	require.NoError(t, errOf(e.Await(t.Context(), transitions.Ref{Scope: work.Record.Scope, Key: "p"})))
	inst, err = e.Read().Instance(t.Context(), "", id)
	assert.Truef(t, err == nil && inst.State == "paid" && string(inst.Data) == `{"cents":107}`, "%+v, %v", inst, err)
	wantIntact(t, e, "")
}

// migrated waits for the end of a migration.
func migrated(t *testing.T, e *engine.Engine, id int64) inspect.Migration {
	t.Helper()
	for {
		m, err := e.Admin().Migration(t.Context(), id)
		require.NoError(t, err)
		if !m.EndedAt.IsZero() {
			return m
		}
		await.Pass("the migration goes on", 20*time.Millisecond)
	}
}

func begun(t *testing.T, e *engine.Engine, perSecond int) inspect.Migration {
	t.Helper()
	m, err := e.Admin().MigrateInstances(t.Context(), inspect.MigrationRequest{Workflow: "claim", From: 1, To: 2, Actor: "ann",
		Reason: "all do", PerSecond: perSecond})
	require.NoError(t, err)
	return m
}

func TestMigration_AllTenantsOnce(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := bothClaims(t, pool)
	if m := migrated(t, e, begun(t, e, 1000).ID); m.Expected+m.Migrated+m.Skipped+m.Rejected != 0 {
		t.Errorf("a migration of nothing: %+v", m)
	}
	const each, bad = 70, 5
	for _, tenant := range []string{"a", "b", "c"} {
		for i := range each {
			id := file(t, e, tenant, fmt.Sprint(i), i-bad).Instance
			if i%3 == 0 {
				c := onClaim(id, "hold", "h")
				c.Tenant = tenant
				submit(t, e, c)
			}
		}
	}
	preview, err := e.Admin().PreviewMigration(t.Context(), "claim", 1, 2)
	require.NoError(t, err)
	var count, wouldGo, wouldNot int64
	for _, s := range preview.States {
		count, wouldGo, wouldNot = count+s.Count, wouldGo+s.Migrated, wouldNot+s.Rejected
	}
	assert.Truef(t, count == 3*each && wouldGo == 3*(each-bad) && wouldNot == 3*bad && len(preview.States) == 2 &&
		len(preview.Refusals) == 2, "%+v", preview)
	assert.Equal(t, 0, query[int](t, pool, "SELECT count(*) FROM pawl.instance WHERE definition = 2"), "the preview has migrated")
	m := migrated(t, e, begun(t, e, 100_000).ID)
	assert.Truef(t, m.Expected == 3*each && m.Migrated == 3*(each-bad) && m.Rejected == 3*bad && m.Skipped == 0 && len(m.Refusals) == 2 &&
		m.Refusals[0].Reason == "the sum is negative" && m.Node == "", "%+v", m)
	n := query[int](t, pool, "SELECT count(*) FROM pawl.audit WHERE transition = 'pawl.migrated' AND actor = 'ann' AND reason = 'all do'")
	assert.Equal(t, 3*(each-bad), n, "transitions")
	for _, tenant := range []string{"a", "b", "c"} {
		wantIntact(t, e, tenant)
	}
	// Earlier builds stored refusals with capitalized names.
	exec(t, pool, `UPDATE pawl.instance_migration SET refusals = '[{"State":"open","Reason":"earlier","Count":2}]' WHERE id = $1`, m.ID)
	m, err = e.Admin().Migration(t.Context(), m.ID)
	want := []inspect.MigrationRefusal{{State: "open", Reason: "earlier", Count: 2}}
	assert.Truef(t, err == nil && slices.Equal(m.Refusals, want), "%+v, %v", m.Refusals, err)
}

// While a node serves that could not read the result, nothing is migrated, and it says so.
func TestMigration_WaitsForOldNodes(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := bothClaims(t, pool)
	old := newEngine(t, pool, running(claims1(pays)))
	id := file(t, e, "", "1", 1).Instance
	m := begun(t, e, 1000)
	for m.Held == "" {
		var err error
		m, err = e.Admin().Migration(t.Context(), m.ID)
		require.NoError(t, err)
		await.Pass("the migration begins", 20*time.Millisecond)
	}
	assert.Truef(t, strings.Contains(m.Held, "do not know version 2") && m.Migrated == 0, "%+v", m)
	wantCode(t, errOf(e.Admin().MigrateInstances(t.Context(), inspect.MigrationRequest{Workflow: "claim", From: 1, To: 2})), workflow.Conflict)
	submit(t, old, onClaim(id, "hold", "h")) // it works on as before
	old.Stop(t.Context())
	m = migrated(t, e, m.ID)
	assert.Equalf(t, int64(1), m.Migrated, "%+v", m)
}

// That holds for one instance, too: nothing is stored under the key, the dry run says so, and what was done before is answered.
func TestTheMigrationOfOneInstanceWaitsForNodesToo(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := bothClaims(t, pool)
	before, id := file(t, e, "", "1", 1).Instance, file(t, e, "", "2", 2).Instance
	done, err := migrateOne(t, e, before, "m")
	require.Truef(t, err == nil && done.Err() == nil, "%+v, %v", done, err)
	old := newEngine(t, pool, running(claims1(pays)))
	name := query[string](t, pool, "SELECT name FROM pawl.node WHERE 'claim 2' <> ALL (versions)")
	waits := func(err error) {
		t.Helper()
		wantCode(t, err, workflow.MigrationWaits)
		assert.Containsf(t, err.Error(), "do not know version 2: "+name, "it does not name the node: %v", err)
	}
	_, err = migrateOne(t, e, id, "m")
	waits(err)
	_, _, err = e.Admin().DryRunOperation(t.Context(), transitions.Command{Instance: id}, transitions.Operation{Action: transitions.Migrate,
		To: 2})
	waits(err)
	again, err := migrateOne(t, e, before, "m")
	assert.Truef(t, err == nil && string(again.Body) == string(done.Body), "%+v, %v", again, err)
	submit(t, old, onClaim(id, "hold", "h")) // it works on as before
	old.Stop(t.Context())
	r, err := migrateOne(t, e, id, "m")
	assert.Truef(t, err == nil && r.Err() == nil && !r.Replayed, "%+v, %v", r, err)
}

// Nobody who asks for something is Pawl itself.
func TestAnOperatorCannotTakeANameOfPawlsOwn(t *testing.T) {
	t.Parallel()
	e := bothClaims(t, database(t))
	id := file(t, e, "", "1", 1).Instance
	for _, actor := range []string{"pawl:timer", transitions.InboxScope("x")} {
		wantCode(t, errOf(e.Admin().MigrateInstances(t.Context(), inspect.MigrationRequest{Workflow: "claim", From: 1, To: 2, Actor: actor})),
			workflow.InvalidRequest)
		wantCode(t, e.Admin().BeginVersion(t.Context(), "claim", 1, actor), workflow.InvalidRequest)
		wantCode(t, e.Admin().PauseWorkflow(t.Context(), "", "claim", actor, ""), workflow.InvalidRequest)
		wantCode(t, errOf(e.Admin().Operate(t.Context(), transitions.Command{Instance: id, Key: "p", Actor: actor},
			transitions.Operation{Action: transitions.Pause})), workflow.InvalidRequest)
	}
}

// A repeated request, concurrent with the first or after its end, is the same migration.
func TestAMigrationWithAKeyIsBegunOnce(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := bothClaims(t, pool)
	file(t, e, "", "1", 1)
	r := inspect.MigrationRequest{Workflow: "claim", From: 1, To: 2, PerSecond: 1000, Actor: "olga", Reason: "r", Key: "k"}
	const times = 8
	ids := make(chan int64, times)
	for range times {
		go func() {
			m, err := e.Admin().MigrateInstances(t.Context(), r)
			assert.NoError(t, err)
			ids <- m.ID
		}()
	}
	first := await.Receive(t, "a migration", ids)
	for range times - 1 {
		assert.Equal(t, first, await.Receive(t, "a migration", ids), "migration beside")
	}
	ended := migrated(t, e, first)
	m, err := e.Admin().MigrateInstances(t.Context(), r)
	assert.Truef(t, err == nil && m.ID == first && m.EndedAt.Equal(ended.EndedAt), "%+v, %v", m, err)
	r.Reason = "another"
	wantCode(t, errOf(e.Admin().MigrateInstances(t.Context(), r)), workflow.KeyReused)
	r.Key = "k\x00"
	wantCode(t, errOf(e.Admin().MigrateInstances(t.Context(), r)), workflow.KeyInvalid)
	list, err := e.Admin().Migrations(t.Context())
	assert.Truef(t, err == nil && len(list) == 1, "%+v, %v", list, err)
	want := []inspect.MigrationPlan{{Workflow: "claim", From: 1, To: 2}}
	got := e.Admin().MigrationPlans()
	assert.Truef(t, slices.Equal(got, want), "%+v", got)
}

func TestAMigrationCanBeStopped(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := bothClaims(t, pool)
	old := newEngine(t, pool, running(claims1(pays)))
	file(t, e, "", "1", 1)
	m := begun(t, e, 1000)
	m, err := e.Admin().StopMigration(t.Context(), m.ID, "olga", "the price was wrong")
	assert.Truef(t, err == nil && !m.EndedAt.IsZero() && !m.StoppedAt.IsZero() && m.StoppedBy == "olga" &&
		m.StopReason == "the price was wrong", "%+v, %v", m, err)
	again, err := e.Admin().StopMigration(t.Context(), m.ID, "bob", "")
	assert.Truef(t, err == nil && reflect.DeepEqual(again, m), "who asks later changes it: %+v, %v", again, err)
	wantCode(t, errOf(e.Admin().StopMigration(t.Context(), m.ID, "olga", "a\x00")), workflow.InvalidRequest)
	old.Stop(t.Context())
	assert.Equal(t, 0, query[int](t, pool, "SELECT count(*) FROM pawl.instance WHERE definition = 2"), "migrated")
	wantCode(t, errOf(e.Admin().StopMigration(t.Context(), 99, "", "")), workflow.NotFound)
	wantCode(t, errOf(e.Admin().MigrateInstances(t.Context(), inspect.MigrationRequest{Workflow: "claim", From: 2, To: 1})),
		workflow.NotOnThisNode)
}
