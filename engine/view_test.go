package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

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
