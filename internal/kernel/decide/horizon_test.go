package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

var dueAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// untaken is a caller's command that was due at dueAt and is claimed for the first time.
func untaken(change func(*InFlight)) *InFlight {
	f := &InFlight{Ref: transitions.Ref{Tenant: "default", Scope: "order:1", Key: "k"}, Phase: transitions.Working,
		Attempt: 1, RunAt: dueAt, Request: []byte(`{}`)}
	if change != nil {
		change(f)
	}
	return f
}

func TestAbandon_PastRetention(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*InFlight)
		after  time.Duration // since it was due
		want   string
	}{
		"in time":                  {nil, time.Hour - 1, "go on"},
		"too late":                 {nil, time.Hour, "untaken after 0"},
		"its caller wanted longer": {func(f *InFlight) { f.Request = []byte(`{"replay_ns":7200000000000}`) }, 2*time.Hour - 1, "go on"},
		"its caller wanted less":   {func(f *InFlight) { f.Request = []byte(`{"replay_ns":60000000000}`) }, time.Minute, "untaken after 0"},
		"a lease ran out":          {func(f *InFlight) { f.RunAt, f.TakenFrom = time.Time{}, "n" }, 99 * time.Hour, "go on"},
		"it was claimed before":    {func(f *InFlight) { f.Attempt = 2 }, 99 * time.Hour, "go on"},
		"it was cancelled":         {func(f *InFlight) { f.CancelledBy = "bob" }, 99 * time.Hour, "cancelled after 0"},
		"a pause":                  {func(f *InFlight) { f.Paused = true }, 99 * time.Hour, "go on"},
		"Pawl's own":               {func(f *InFlight) { f.Scope = "pawl:timer:1:late" }, 99 * time.Hour, "go on"},
		"a message asks for it":    {func(f *InFlight) { f.Scope = transitions.InboxScope("bank") }, 99 * time.Hour, "go on"},
		"its request is unreadable": {func(f *InFlight) { f.Request = []byte(`{`) }, 99 * time.Hour,
			"failed_retryable undecidable"},
	} {
		t.Run(name, func(t *testing.T) {
			now := dueAt.Add(c.after)
			v, decided := untaken(c.change).Before(&workflow.Work{Retry: workflow.Retry{Attempts: 3}}, time.Hour, now)
			due := untaken(c.change)
			due.Phase = transitions.Scheduled
			vDue, decidedDue := due.BeforeDue(time.Hour, now)
			got, gotDue := "go on", "go on"
			if decided {
				got = describe(v)
			}
			if decidedDue {
				gotDue = describe(vDue)
			}
			assert.Truef(t, strings.HasPrefix(got, c.want) && strings.HasPrefix(gotDue, c.want),
				"an activity comes to %q, a scheduled command to %q, want %q", got, gotDue, c.want)
		})
	}
	undo := untaken(func(f *InFlight) { f.Phase = transitions.Undoing })
	v, decided := undo.Before(&workflow.Work{Retry: workflow.Retry{Attempts: 3}}, time.Hour, dueAt.Add(99*time.Hour))
	assert.Falsef(t, decided, "an undo comes to %s", describe(v))
}

func TestUntilWhenAnAnswerIsReplayed(t *testing.T) {
	t.Parallel()
	h := workflow.Horizons{}.Resolve(time.Hour)
	for name, c := range map[string]struct {
		keep Keep
		want time.Duration
	}{
		"as the workflow says":           {Keep{}, time.Hour},
		"longer for the caller":          {Keep{Replay: 2 * time.Hour}, 2 * time.Hour},
		"less for the caller":            {Keep{Replay: time.Minute}, time.Minute},
		"longer for the action":          {Keep{Replay: time.Minute, Answer: 3 * time.Hour}, 3 * time.Hour},
		"never shorter for the action":   {Keep{Answer: time.Minute}, time.Hour},
		"a tombstone is another's":       {Keep{Tombstone: workflow.Forever}, time.Hour},
		"a caller who wants two minutes": {Keep{Replay: 2 * time.Minute, Answer: time.Minute}, 2 * time.Minute},
	} {
		assert.Equal(t, c.want, c.keep.Until(h, dueAt).Sub(dueAt), name)
	}
}

func TestRetention_WorkflowBounds(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	h := workflow.Horizons{MaxReplay: 2 * day, MaxTombstone: 90 * day}.Resolve(day)
	for _, c := range []struct {
		replay, tombstone time.Duration
		says              string
	}{
		{0, 0, ""}, {2 * day, 90 * day, ""}, {time.Second, time.Second, ""},
		{2*day + 1, 0, "48h0m0s"}, {0, 90*day + 1, "2160h0m0s"}, {0, workflow.Forever, "2160h0m0s"},
	} {
		err := CheckKeep(transitions.Command{Workflow: "order", Options: transitions.Options{Replay: c.replay, Tombstone: c.tombstone}}, h)
		assert.Truef(t, (c.says != "" || err == nil) && (c.says == "" || workflow.CodeOf(err) == workflow.InvalidRequest &&
			strings.Contains(err.Error(), c.says)),
			"%s, %s: got %v", c.replay, c.tombstone, err)
	}
	forever := workflow.Horizons{Tombstone: workflow.Forever}.Resolve(day)
	assert.NoError(t, CheckKeep(transitions.Command{Options: transitions.Options{Tombstone: workflow.Forever}}, forever),
		"what the workflow does itself")
	err := CheckCommand(transitions.Command{Key: "k", Transition: "t", Options: transitions.Options{Replay: -1}})
	assert.Equalf(t, workflow.InvalidRequest, workflow.CodeOf(err), "a negative time: %v", err)
}

// For an operator too a command whose answer is gone is one that is gone.
func TestOperations_Tombstone(t *testing.T) {
	t.Parallel()
	past := time.Now().Add(-time.Hour)
	for name, r := range map[string]*transitions.Record{
		"expired":              {Status: transitions.FailedFinal, ExpiresAt: past},
		"a tombstone":          {Status: transitions.Expired, ExpiresAt: past.Add(99 * time.Hour)},
		"a tombstone for good": {Status: transitions.Expired},
	} {
		p, err := Operate(transitions.Command{Key: "op", Workflow: "trip", Instance: r.Instance},
			transitions.Operation{Action: transitions.Retry, Target: transitions.CommandRef{Scope: "s", Key: "k"}})
		require.NoError(t, err)
		p.Stuck = r
		d := Decide(p, nil, nil, time.Now())
		assert.Truef(t, !d.Stored && d.Err != nil && d.Err.Code == workflow.KeyExpired, "%s: %+v", name, d)
	}
}

// The retention period that a caller requested survives the execution, and is not part of the fingerprint.
func TestHowLongAKeyIsGoodOutlivesTheFlight(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	asked := l.command("book", `{}`)
	plain := l.prepare(asked).Fingerprint
	asked.Replay, asked.Tombstone = 5*time.Hour, workflow.Forever
	kept := func(what string, p *Prepared, err error) {
		t.Helper()
		assert.Truef(t, err == nil && p.Replay == asked.Replay && p.Tombstone == asked.Tombstone && p.Fingerprint == plain,
			"%s: %+v, %v", what, p, err)
	}
	p := l.prepare(asked)
	kept("prepared", p, nil)
	d := Decide(p, l.w, l.inst, l.now)
	f := FlightOf(p.Begun(&d, l.now), p.Tenant)
	ending, err := f.Ending(Outcome{Result: []byte(`{}`)})
	kept("an activity", ending, err)
	l.inst = d.After

	stuck := p.Begun(&d, l.now)
	stuck.Stuck = transitions.StuckUnknown
	for _, action := range []transitions.Action{transitions.Retry, transitions.Resolve, transitions.Abandon} {
		settled := l.operate(action, stuck)
		assert.Truef(t, settled.Target != nil && settled.Target.Keep == (Keep{Replay: asked.Replay, Tombstone: asked.Tombstone}) &&
			settled.Target.Workflow == "trip",
			"%s: %+v, %+v", action, settled.Target, settled.Err)
	}

	asked.NotBefore = l.now.Add(time.Hour)
	plain = l.prepare(asked).Fingerprint
	later := l.prepare(asked)
	d = Decide(later, l.w, l.inst, l.now)
	due, err := FlightOf(later.Begun(&d, l.now), later.Tenant).Due(l.w)
	kept("a scheduled command", due, err)
	l.inst.Links.InFlight, l.inst.State = nil, planned
	d = Decide(due, l.w, l.inst, asked.NotBefore)
	require.NotNilf(t, d.Flight, "%+v", d)
	ending, err = FlightOf(due.Begun(&d, l.now), due.Tenant).Ending(Outcome{Result: []byte(`{}`)})
	kept("a scheduled activity", ending, err)
}
