package decide

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The workflow of the tests of what is in flight: a trip, booked and paid with
// others, with timers, and trips of companions as children.
const (
	planned   workflow.State = "planned"
	booking   workflow.State = "booking"
	booked    workflow.State = "booked"
	waiting   workflow.State = "waiting"
	unbooked  workflow.State = "unbooked"
	charging  workflow.State = "charging"
	charged   workflow.State = "charged"
	uncharged workflow.State = "uncharged"
	over      workflow.State = "over"
)

type trip struct {
	Log    []string  `json:"log,omitempty"`
	Leaves time.Time `json:"leaves,omitzero"`
	Number int64     `json:"number,omitzero"`
}

// wish is the payload of every transition of a trip, and the result of its activities: what the code shall do.
type wish struct {
	Do     string    `json:"do,omitempty"`
	Text   string    `json:"text,omitempty"`
	Leaves time.Time `json:"leaves,omitzero"`
	N      int       `json:"n,omitzero"`
}

func (d *trip) note(format string, args ...any) { d.Log = append(d.Log, fmt.Sprintf(format, args...)) }

// obey does what the wish says, beside noting it.
func obey(what string) func(*workflow.Call, *trip, wish) error {
	return func(c *workflow.Call, d *trip, w wish) error {
		d.note("%s %s", what, w.Text)
		if !w.Leaves.IsZero() {
			d.Leaves = w.Leaves
		}
		switch w.Do {
		case "refuse":
			return workflow.Refuse("refused: %s", w.Text)
		case "panic":
			panic("secret of the house")
		case "goto":
			c.Goto(workflow.State(w.Text))
		case "emit":
			c.Emit("trip.news", w.Text)
		case "spawn":
			for range max(w.N, 1) {
				c.Spawn(workflow.Child{Workflow: "trip", Transition: "plan", Payload: wish{Text: w.Text}, End: "joined"})
			}
		case "spawn a family": // of which every member has one of its own
			c.Spawn(workflow.Child{Workflow: "trip", Transition: "plan", Payload: w})
		case "spawn what is not there":
			c.Spawn(workflow.Child{Workflow: "cruise", Transition: "plan"})
		case "spawn by a step":
			c.Spawn(workflow.Child{Workflow: "trip", Transition: "edit"})
		case "spawn with a key":
			c.Spawn(workflow.Child{Workflow: "trip", Transition: "invite", Payload: wish{Text: "bob"}})
		case "spawn wrongly":
			c.Spawn(workflow.Child{Workflow: "trip", Transition: "plan", Payload: map[string]int{"unknown": 1}})
		case "spawn the refused":
			c.Spawn(workflow.Child{Workflow: "trip", Transition: "plan", Payload: wish{Do: "refuse"}})
		}
		return nil
	}
}

func failTrip(_ *workflow.Call, d *trip, f workflow.Failure) error {
	d.note("%s after %d: %s", f.Kind, f.Attempts, f.Message)
	switch f.Message {
	case "panic":
		panic("secret of the house")
	case "refuse":
		return workflow.Refuse("not with me")
	}
	return nil
}

func tripDefinition() *workflow.Definition[trip] {
	work := func(context.Context, *workflow.Attempt, trip, wish) (wish, error) { return wish{}, nil }
	undo := func(context.Context, *workflow.Attempt, trip, wish, *wish) error { return nil }
	underWay := workflow.From(planned, booking, booked, waiting, unbooked, charging, charged, uncharged)
	return workflow.Define("trip", 1,
		workflow.Start("plan", planned, obey("plan")).Or(over),
		workflow.Start("invite", planned, obey("invite")).BusinessKey(func(w wish) string { return w.Text }),
		workflow.Do("book", workflow.From(planned, unbooked), booking, booked, work, obey("booked")).Or(waiting).
			Accept(obey("book")).OrElse(unbooked, failTrip).Undo(undo).Role("traveller"),
		workflow.Do("insure", workflow.From(booked), "insuring", booked, work, obey("insured")).OrElse(booked, failTrip).Undo(undo),
		workflow.Do("pay", workflow.From(booked, uncharged), charging, charged, work, obey("charged")).
			OrElse(uncharged, failTrip).Undoes("book", "insure"),
		workflow.On("edit", underWay, workflow.Stay, obey("edit")),
		workflow.On("nag", workflow.From(planned, unbooked), workflow.Stay, obey("nag")),
		workflow.On("leave", workflow.From(booked, waiting, charged), charged, obey("leave")),
		workflow.On("joined", underWay, workflow.Stay, func(_ *workflow.Call, d *trip, e workflow.Ended[trip]) error {
			d.note("joined by %s with %v", e.State, e.Data.Log)
			d.Number = e.Data.Number
			return nil
		}).Role("clockwork"),
		workflow.On("end", underWay, over, obey("end")),
		workflow.On("count", workflow.From(planned), over, func(_ *workflow.Call, d *trip, _ workflow.None) error {
			d.Number = 1<<53 + 1 // more than a double keeps
			return nil
		}),
	).Final(over).Roles("traveller", "clockwork").After("nagging", workflow.From(planned, unbooked), time.Hour, "nag").
		After("expiry", workflow.From(planned, booking, unbooked), 24*time.Hour, "end").
		At("departure", workflow.From(booked, waiting), func(d trip) time.Time {
			if slices.Contains(d.Log, "edit panic") {
				panic("secret of the house")
			}
			return d.Leaves
		}, "leave")
}

// life is an instance of the trip as tests lead it on.
type life struct {
	t    testing.TB
	w    *workflow.Workflow
	inst *transitions.Instance
	now  time.Time
	keys int

	trace tracing.Context // of its commands
}

// newLife plans a trip.
func newLife(t testing.TB) *life {
	t.Helper()
	l := &life{t: t, w: built(t, tripDefinition()), now: noon}
	l.must(l.decide(l.command("plan", `{}`)))
	return l
}

func (l *life) command(transition, payload string) transitions.Command {
	l.keys++
	c := transitions.Command{Workflow: "trip", Transition: transition, Payload: []byte(payload), Key: fmt.Sprint("k", l.keys), Actor: "ann",
		Roles: []string{"traveller"}, Options: transitions.Options{Trace: l.trace}}
	if l.inst != nil {
		c.Instance = l.inst.ID
	}
	return c
}

func (l *life) prepare(c transitions.Command) *Prepared {
	l.t.Helper()
	p, err := Prepare(c, l.w, fixedID)
	require.NoErrorf(l.t, err, "%s: %v", c.Transition, err)
	return p
}

// decide decides without a consequence.
func (l *life) decide(c transitions.Command) (*Prepared, Decision) {
	l.t.Helper()
	p := l.prepare(c)
	return p, Decide(p, l.w, l.inst, l.now)
}

// must takes a decision as done, and the instance on.
func (l *life) must(_ *Prepared, d Decision) Decision {
	l.t.Helper()
	require.Truef(l.t, d.Stored && d.After != nil, "not done: %+v", d)
	l.inst = d.After
	return d
}

// do decides a command, which has to be done.
func (l *life) do(transition, payload string) Decision {
	l.t.Helper()
	return l.must(l.decide(l.command(transition, payload)))
}

// accept has an activity accepted and returns the command in flight, at its first attempt.
func (l *life) accept(transition, payload string) *InFlight {
	l.t.Helper()
	p, d := l.decide(l.command(transition, payload))
	l.must(p, d)
	f := FlightOf(p.Begun(&d, l.now), p.Tenant)
	f.Attempt, f.Definition, f.Data = 1, d.After.Definition, d.After.Data
	return f
}

// end decides the outcome of an attempt.
func (l *life) end(f *InFlight, o Outcome) Decision {
	l.t.Helper()
	p, err := f.Ending(o)
	require.NoError(l.t, err)
	return Decide(p, l.w, l.inst, l.now)
}

// worked ends an activity well.
func (l *life) worked(transition, result string) Decision {
	l.t.Helper()
	return l.must(nil, l.end(l.accept(transition, `{}`), Outcome{Result: []byte(result)}))
}

// flight is a planned command as its first attempt sees it.
func (p *Planned) flight() *InFlight {
	return &InFlight{Ref: transitions.Ref{Tenant: "default", Scope: p.Scope, Key: p.Key}, Fingerprint: p.Fingerprint, Phase: p.Flight.Phase,
		Workflow:   p.Workflow,
		Transition: p.Transition, Instance: p.Instance, Actor: p.Actor, Request: p.Flight.Request, Attempt: 1, RunAt: p.Flight.RunAt}
}

func failure(kind workflow.FailureKind, message string, unknown bool) Outcome {
	return Outcome{Failure: &workflow.Failure{Kind: kind, Message: message, Attempts: 3, Unknown: unknown}}
}

// plans lists what a decision begins, shortly.
func plans(d Decision) (list []string) {
	for _, c := range d.Commands {
		list = append(list, fmt.Sprintf("%s %s at %s", c.Flight.Phase, c.Transition, c.Flight.RunAt.Format("02 15:04")))
	}
	return list
}

func timerOf(l *life, name string) string { return "pawl:timer:" + l.inst.ID.String() + ":" + name }

// anyTrip is a trip in a state, without a past.
func anyTrip(s workflow.State, data string) *transitions.Instance {
	return &transitions.Instance{Tenant: "default", ID: madeUp, Workflow: "trip", Definition: 1, State: s, Version: 1, Data: []byte(data),
		Open: s != over}
}

func wantLog(t testing.TB, i *transitions.Instance, want ...string) {
	t.Helper()
	got := decoded[trip](t, i.Data).Log
	assert.Truef(t, slices.Equal(got, want), "the trip has the log %q, want %q", got, want)
}

func decoded[T any](t testing.TB, raw []byte) (v T) {
	t.Helper()
	require.NoErrorf(t, json.Unmarshal(raw, &v), "in %s", raw)
	return v
}

// The workflow of these tests: a help desk, where a letter opens a ticket or is added to one, and "answer" is a call or a letter.
type ticket struct {
	Log []string `json:"log,omitempty"`
}

// endOn decides the outcome of an attempt on an instance.
func endOn(t testing.TB, w *workflow.Workflow, f *InFlight, inst *transitions.Instance, o Outcome) Decision {
	t.Helper()
	p, err := f.Ending(o)
	require.NoError(t, err)
	return Decide(p, w, inst, noon)
}
