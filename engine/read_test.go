package engine_test

import (
	"context"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestAnInstanceReadsAsItWasDecided(t *testing.T) {
	t.Parallel()
	pool := database(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	e := newEngine(t, pool, func(c *engine.Config) { c.Now = func() time.Time { return now } })
	submit(t, e, applied("L-1", 100))
	submit(t, e, on("pay", "L-1", "p-1", 30, ""))
	at := now.UTC().Truncate(time.Microsecond)
	want := transitions.Instance{
		Tenant: "default", ID: loanID("L-1"), Workflow: "loan", Definition: 1, BusinessKey: "L-1", State: "open", Version: 2,
		Data: []byte(`{"customer":"c-1","region":"north","owed":70}`), Attributes: map[string]string{"customer": "c-1", "region": "north"},
		Actors: map[string][]string{"apply": {"ann"}}, Open: true, CreatedAt: at, UpdatedAt: at,
	}
	history, err := e.Read().History(t.Context(), "", want.ID, 0, 10)
	require.Truef(t, err == nil && len(history) == 2, "got %d entries, %v", len(history), err)
	want.Chain = history[1].Hash
	got, err := e.Read().Instance(t.Context(), "", loanID("L-1"))
	assert.Truef(t, err == nil && reflect.DeepEqual(got, want), "got  %+v, %v\nwant %+v", got, err, want)
	byKey, err := e.Read().InstanceByKey(t.Context(), "default", "loan", "L-1")
	assert.Truef(t, err == nil && reflect.DeepEqual(byKey, want), "by its key: got %+v, %v", byKey, err)
	page, err := e.Read().Instances(t.Context(), inspect.Filter{})
	assert.Truef(t, err == nil && len(page.Instances) == 1 && reflect.DeepEqual(page.Instances[0], want), "in a list: got %+v, %v", page, err)
}

func TestReads_NotFound(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t))
	submit(t, e, applied("L-1", 100))
	id := loanID("L-1")
	for _, tenant := range []string{"acme", ""} {
		if tenant == "" {
			id = uuid.New()
		}
		wantCode(t, errOf(e.Read().Instance(t.Context(), tenant, id)), workflow.InstanceNotFound)
		wantCode(t, errOf(e.Read().History(t.Context(), tenant, id, 0, 10)), workflow.InstanceNotFound)
		wantCode(t, errOf(e.Read().Explain(t.Context(), tenant, id, "ann", nil)), workflow.InstanceNotFound)
		wantCode(t, errOf(e.Admin().Verify(t.Context(), tenant, id)), workflow.InstanceNotFound)
		wantCode(t, errOf(e.Submit(t.Context(), transitions.Command{Tenant: tenant, Instance: id, Transition: "pay", Key: "k",
			Payload: []byte(`{"amount":1,"do":""}`)})), workflow.InstanceNotFound)
	}
	wantCode(t, errOf(e.Read().InstanceByKey(t.Context(), "", "loan", "L-2")), workflow.InstanceNotFound)
	wantCode(t, errOf(e.Read().InstanceByKey(t.Context(), "acme", "loan", "L-1")), workflow.InstanceNotFound)
	wantCode(t, errOf(e.Read().InstanceByKey(t.Context(), "", "gift", "L-1")), workflow.WorkflowNotFound)
	wantCode(t, errOf(e.Read().Workflow("gift", 0)), workflow.WorkflowNotFound)
	wantCode(t, errOf(e.Read().Workflow("loan", 2)), workflow.NotOnThisNode)
	wantCode(t, errOf(e.Read().Command(t.Context(), transitions.Ref{Scope: "loan:apply", Key: "apply-L-2"})), workflow.CommandNotFound)
	wantCode(t, errOf(e.Read().Command(t.Context(), transitions.Ref{Tenant: "acme", Scope: "loan:apply", Key: "apply-L-1"})),
		workflow.CommandNotFound)
}

func TestHistoryGoesPageByPage(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t))
	submit(t, e, applied("L-1", 100))
	for _, key := range []string{"a", "b", "c", "d"} {
		submit(t, e, on("pay", "L-1", key, 25, ""))
	}
	var keys []string
	for after := int64(0); ; {
		page, err := e.Read().History(t.Context(), "", loanID("L-1"), after, 2)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, entry := range page {
			assert.Truef(t, entry.Version == after+1 && entry.Position == entry.Version,
				"after %d: version %d at position %d", after, entry.Version, entry.Position)
			after = entry.Version
			keys = append(keys, entry.Key)
		}
	}
	assert.Equal(t, []string{"apply-L-1", "a", "b", "c", "d"}, keys)
	entries, err := e.Read().History(t.Context(), "", loanID("L-1"), 5, 0) // past its end: nothing, and no error
	assert.Truef(t, err == nil && len(entries) == 0, "past the end: %v, %v", entries, err)
}

func TestACommandReadsAsItWasAnswered(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), func(c *engine.Config) { c.Replay = time.Hour })
	first := submit(t, e, applied("L-1", 100))
	got, err := e.Read().Command(t.Context(), transitions.Ref{Scope: "loan:apply", Key: "apply-L-1"})
	require.NoError(t, err)
	assert.Truef(t, got.Status == transitions.Succeeded && got.Code == 201 && got.Version == 1 && got.Position == first.Position &&
		got.Instance == first.Instance && got.Workflow == "loan" && got.Transition == "apply" && got.Fingerprint != [32]byte{}, "got %+v", got)
	assert.Truef(t, got.ExpiresAt.Sub(got.FinishedAt) == time.Hour && got.CreatedAt.Equal(got.FinishedAt) && got.LockedUntil.IsZero(),
		"got %s, %s, %s", got.CreatedAt, got.FinishedAt, got.ExpiresAt)
	replay, err := got.Receipt(), error(nil)
	assert.Truef(t, err == nil && string(replay.Body) == string(first.Body),
		"it would be replayed as %s, %v; it was %s", replay.Body, err, first.Body)
	r, err := e.Submit(t.Context(), on("pay", "L-1", "too much", 101, ""))
	require.Truef(t, err == nil && r.Refused(), "got %+v, %v", r, err)
	got, err = e.Read().Command(t.Context(), transitions.Ref{Scope: "loan:" + loanID("L-1").String(), Key: "too much"})
	assert.Truef(t, err == nil && got.Status == transitions.FailedFinal && got.Code == 409 && got.Version == 0 && got.Position == 0,
		"refused: got %+v, %v", got, err)
}

func TestVerifyAndHeadAreOfOneTenant(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	for _, tenant := range []string{"", "acme"} {
		for _, number := range []string{"L-1", "L-2"} {
			c := applied(number, 10)
			c.Tenant = tenant
			submit(t, e, c)
		}
	}
	for tenant, want := range map[string]int64{"": 2, "acme": 2, "nobody": 0} {
		head, err := e.Read().Head(t.Context(), tenant)
		assert.Truef(t, err == nil && head == want, "%q: head %d, %v", tenant, head, err)
	}
	exec(t, pool, "UPDATE pawl.audit SET actor = 'eve' WHERE tenant = 'acme' AND instance = $1", transitions.InstanceID("acme", "loan", "L-2"))
	got, err := e.Admin().Verify(t.Context(), "", uuid.Nil)
	assert.Truef(t, err == nil && len(got.Broken) == 0 && got.Entries == 2, "the default tenant: %+v, %v", got, err)
	rows := int64(-1)
	got, err = e.Admin().VerifyWithProgress(t.Context(), "acme", uuid.Nil, func(n int64) { rows = n })
	assert.Truef(t, err == nil && len(got.Broken) == 1 && got.Broken[0].Instance == transitions.InstanceID("acme", "loan", "L-2"),
		"acme: %+v, %v", got, err)
	assert.Truef(t, rows <= 2, "progress says %d rows", rows)
	got, err = e.Admin().Verify(t.Context(), "acme", transitions.InstanceID("acme", "loan", "L-1"))
	assert.Truef(t, err == nil && len(got.Broken) == 0 && got.Entries == 1, "one instance: %+v, %v", got, err)
}

// An engine that only reads follows what others commit, takes no commands, and leaves no trace in the database.
func TestAnEngineThatReadsWritesNothing(t *testing.T) {
	t.Parallel()
	pool := database(t)
	goOn := make(chan struct{})
	own := []workflow.Source{loans(1, collecting(goOn))}
	reads, err := engine.New(engine.Config{Pool: pool, Workflows: own, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer reads.Stop(context.Background())
	require.NoError(t, reads.StartReading(t.Context()))
	before := rowCounts(t, pool)
	wantCode(t, errOf(reads.Submit(t.Context(), applied("L-1", 100))), workflow.ShuttingDown)
	wantMore(t, pool, before, nil)
	assert.Equal(t, 0, query[int](t, pool, "SELECT count(*) FROM pawl.definition"), "definitions are written down")

	node := newEngine(t, pool, func(c *engine.Config) { c.Workflows = own })
	f := reads.Read().Follow("", 0)
	defer f.Close()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	submit(t, node, applied("L-1", 100))
	batch, err := f.Next(ctx)
	assert.Truef(t, err == nil && len(batch.Events) != 0 && batch.Events[0].Transition == "apply", "%+v, %v", batch, err)
	receipt := submit(t, node, on("collect", "L-1", "c", 100, ""))
	close(goOn)
	r, err := reads.Await(ctx, transitions.Ref{Scope: receipt.Record.Scope, Key: "c"})
	assert.Truef(t, err == nil && r.Err() == nil, "%+v, %v", r, err)
}

func TestAViewHasWhatWaitsOnTheInstance(t *testing.T) {
	t.Parallel()
	pool := database(t)
	w := workflow.Define("stay", 1, workflow.Start("open", "waiting", keep),
		workflow.Do("charge", workflow.From("waiting"), "charging", "waiting",
			func(context.Context, *workflow.Attempt, struct{}, workflow.None) (int, error) { return 1, nil }, nothing[struct{}, int]).
			OrElse("failed", nothing[struct{}, workflow.Failure]).
			Undo(func(context.Context, *workflow.Attempt, struct{}, workflow.None, *int) error { return nil }),
		workflow.Do("ship", workflow.From("waiting"), "shipping", "expired",
			func(context.Context, *workflow.Attempt, struct{}, workflow.None) (int, error) { return 1, nil }, nothing[struct{}, int]).
			OrElse("failed", nothing[struct{}, workflow.Failure]).Undoes("charge"),
		workflow.On("remind", workflow.From("waiting"), workflow.Stay, keep),
		workflow.On("expire", workflow.From("waiting"), "expired", keep),
	).Final("failed", "expired").After("expiry", workflow.From("waiting"), 2*time.Hour, "expire").
		After("reminder", workflow.From("waiting"), time.Hour, "remind")
	e := newEngine(t, pool, flows(w))
	r := submit(t, e, transitions.Command{Workflow: "stay", Transition: "open", Key: "1"})
	other := submit(t, e, transitions.Command{Workflow: "stay", Transition: "open", Key: "2"})
	submit(t, e, transitions.Command{Workflow: "stay", Transition: "charge", Key: "c", Instance: r.Instance})
	_, err := e.Await(t.Context(), transitions.Ref{Scope: "stay:" + r.Instance.String(), Key: "c"})
	require.NoError(t, err)
	soon := time.Now().UTC().Add(time.Hour).Truncate(time.Microsecond)
	for key, later := range map[string]time.Duration{"late": 5 * time.Hour, "soon": 0} {
		submit(t, e, transitions.Command{Workflow: "stay", Transition: "remind", Key: key, Actor: "ann", Instance: r.Instance,
			Options: transitions.Options{Scope: "desk", NotBefore: soon.Add(later)}})
	}
	v, err := e.Read().View(t.Context(), "", r.Instance)
	require.NoError(t, err)
	assert.Truef(t, v.ID == r.Instance && v.Version == 3 && !v.MoreTimers && !v.MoreScheduled, "the view is %+v", v)
	assert.Truef(t, len(v.Timers) == 2 && v.Timers[0].Name == "reminder" && v.Timers[0].Transition == "remind" &&
		v.Timers[1].Name == "expiry" && v.Timers[0].Due.Sub(v.UpdatedAt) == time.Hour && v.Timers[1].Due.Location() == time.UTC,
		"the timers are %+v", v.Timers)
	want := (inspect.ScheduledCommand{Transition: "remind", Scope: "desk", Key: "soon", Actor: "ann", Due: soon})
	assert.Truef(t, len(v.Scheduled) == 2 && v.Scheduled[0] == want && v.Scheduled[1].Key == "late", "scheduled are %+v", v.Scheduled)
	if e := v.Links.Effects; len(e) != 1 || e[0].Transition != "charge" || e[0].Key != "c" {
		t.Errorf("the effects are %+v", e)
	}
	if v, err := e.Read().View(t.Context(), "", other.Instance); err != nil || len(v.Timers) != 2 || v.Scheduled != nil {
		t.Errorf("of another instance: %+v, %v", v, err)
	}
	submit(t, e, transitions.Command{Workflow: "stay", Transition: "expire", Key: "x", Instance: r.Instance})
	if v, err := e.Read().View(t.Context(), "", r.Instance); err != nil || v.Timers != nil || len(v.Scheduled) != 2 {
		t.Errorf("after it has ended: %+v, %v", v, err)
	}
	wantCode(t, errOf(e.Read().View(t.Context(), "", uuid.New())), workflow.InstanceNotFound)
	wantCode(t, errOf(e.Read().View(t.Context(), "acme", r.Instance)), workflow.InstanceNotFound)
}

// A view has so many of each, and says that there are more.
func TestAViewIsBounded(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	submit(t, e, applied("L-1", 10))
	id := loanID("L-1")
	exec(t, pool, `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at, phase,
			attempt, failures, revision, request, updated_at, run_at)
		SELECT 'default', k || i, 'k', sha256('x'), 'pending', 'loan', 'pay', $1, 'ann', now(), 'scheduled', 0, 0, 0, '{}', now(),
			now() + interval '1 day' + i * interval '1 second'
		FROM generate_series(1, 150) i, (VALUES ('desk '), ($2)) AS s(k)`, id, decide.TimerScope(id, "t"))
	v, err := e.Read().View(t.Context(), "", id)
	require.NoError(t, err)
	assert.Truef(t, len(v.Timers) == inspect.MaxWaiting && v.MoreTimers && len(v.Scheduled) == inspect.MaxWaiting && v.MoreScheduled,
		"%d timers, %d scheduled, more %t %t", len(v.Timers), len(v.Scheduled), v.MoreTimers, v.MoreScheduled)
	assert.Equal(t, "desk 1", v.Scheduled[0].Scope)
}
