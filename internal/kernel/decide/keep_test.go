package decide

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

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
