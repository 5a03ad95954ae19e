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
		"in time":                   {nil, time.Hour - 1, "go on"},
		"too late":                  {nil, time.Hour, "untaken after 0"},
		"its caller wanted longer":  {func(f *InFlight) { f.Request = []byte(`{"replay_ns":7200000000000}`) }, 2*time.Hour - 1, "go on"},
		"its caller wanted less":    {func(f *InFlight) { f.Request = []byte(`{"replay_ns":60000000000}`) }, time.Minute, "untaken after 0"},
		"a lease ran out":           {func(f *InFlight) { f.RunAt, f.TakenFrom = time.Time{}, "n" }, 99 * time.Hour, "go on"},
		"it was claimed before":     {func(f *InFlight) { f.Attempt = 2 }, 99 * time.Hour, "go on"},
		"it was cancelled":          {func(f *InFlight) { f.CancelledBy = "bob" }, 99 * time.Hour, "cancelled after 0"},
		"a pause":                   {func(f *InFlight) { f.Paused = true }, 99 * time.Hour, "go on"},
		"Pawl's own":                {func(f *InFlight) { f.Scope = "pawl:timer:1:late" }, 99 * time.Hour, "go on"},
		"a message asks for it":     {func(f *InFlight) { f.Scope = transitions.InboxScope("bank") }, 99 * time.Hour, "go on"},
		"its request is unreadable": {func(f *InFlight) { f.Request = []byte(`{`) }, 99 * time.Hour, "failed_retryable undecidable"},
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
			settled.Target.Workflow == "trip", "%s: %+v, %+v", action, settled.Target, settled.Err)
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
