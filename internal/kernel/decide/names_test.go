package decide

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The workflow of these tests: a help desk, where a letter opens a ticket or is added to one, and "answer" is a call or a letter.
type ticket struct {
	Log []string `json:"log,omitempty"`
}

type letter struct {
	Ticket string `json:"ticket,omitempty"`
	Text   string `json:"text"`
}

func logged(what string) func(*workflow.Call, *ticket, letter) error {
	return func(_ *workflow.Call, d *ticket, l letter) error {
		d.Log = append(d.Log, what+" "+l.Text)
		return nil
	}
}

func helpDesk(t testing.TB) *workflow.Workflow {
	t.Helper()
	answer := func(from, via workflow.State) *workflow.Activity[ticket, letter, letter] {
		return workflow.Do("answer", workflow.From(from), via, workflow.Stay,
			func(context.Context, *workflow.Attempt, ticket, letter) (letter, error) { return letter{}, nil },
			logged(string(via))).OrElse(workflow.Stay, func(_ *workflow.Call, d *ticket, f workflow.Failure) error {
			d.Log = append(d.Log, string(via)+" failed: "+f.Message)
			return nil
		})
	}
	undo := func(context.Context, *workflow.Attempt, ticket, letter, *letter) error { return nil }
	return built(t, workflow.Define("desk", 1,
		workflow.Start("write", "new", logged("opened by")).BusinessKey(func(l letter) string { return l.Text }).
			Receive("mail", workflow.JSON(func(_ workflow.Message, l letter) (workflow.Address, letter, error) {
				if l.Ticket != "" {
					return workflow.Address{}, l, workflow.ErrNotMine
				}
				return workflow.Address{}, l, nil
			})),
		workflow.On("write", workflow.From("new", "known"), workflow.Stay, logged("added")).Role("customer").
			Receive("mail", workflow.JSON(func(_ workflow.Message, l letter) (workflow.Address, letter, error) {
				return workflow.Address{BusinessKey: l.Ticket}, l, nil
			})),
		workflow.On("take", workflow.From("new"), "known", logged("taken")),
		answer("new", "phoning"), answer("known", "posting").Undo(undo),
		workflow.On("close", workflow.From("new", "known", "phoning", "posting"), "closed", logged("closed")),
		workflow.Do("bill", workflow.From("known"), "billing", "closed",
			func(context.Context, *workflow.Attempt, ticket, letter) (letter, error) { return letter{}, nil },
			logged("billed")).OrElse(workflow.Stay, func(*workflow.Call, *ticket, workflow.Failure) error { return nil }).Undoes("answer"),
	).Final("closed").Roles("customer").After("reminder", workflow.From("new"), time.Hour, "answer"))
}

func TestOneNameBeginsAnInstanceAndTakesItOn(t *testing.T) {
	t.Parallel()
	w := helpDesk(t)
	c := transitions.Command{Workflow: "desk", Transition: "write", Key: "k", Payload: []byte(`{"text":"T-1"}`), Roles: []string{"customer"}}
	p, err := Prepare(c, w, fixedID)
	require.Truef(t, err == nil && p.Creates && p.BusinessKey == "T-1" && p.Scope == "desk:write",
		"without an address: %+v, %v", p, err)
	d := Decide(p, w, nil, noon)
	require.Truef(t, d.After != nil && d.Code == 201 && d.After.State == "new", "got %+v", d)
	inst := d.After
	for _, address := range []func(*transitions.Command){
		func(c *transitions.Command) { c.Instance = inst.ID },
		func(c *transitions.Command) { c.BusinessKey = "T-1" },
	} {
		on := c
		address(&on)
		p, err := Prepare(on, w, fixedID)
		require.Truef(t, err == nil && !p.Creates && p.Instance == inst.ID && p.Scope == "desk:"+inst.ID.String(),
			"with an address: %+v, %v", p, err)
		if d := Decide(p, w, inst, noon); d.After == nil || d.Code != 200 || d.After.Version != 2 ||
			decoded[ticket](t, d.After.Data).Log[1] != "added T-1" {
			t.Errorf("got %+v", d)
		}
		wantCode(t, Decide(p, w, nil, noon).Err, workflow.InstanceNotFound)
		closed := clone(inst)
		closed.State, closed.Open = "closed", false
		wantCode(t, Decide(p, w, closed, noon).Err, workflow.IllegalTransition)
		on.Roles = nil // a role to create an instance does not permit changing one or reading its state
		p, _ = Prepare(on, w, fixedID)
		wantCode(t, Decide(p, w, closed, noon).Err, workflow.RoleRequired)
	}
	if d := Decide(p, w, inst, noon); d.Code != 200 || d.After != nil || d.Err != nil { // a second beginning is none
		t.Errorf("got %+v", d)
	}
	options := Explain(w, inst, "ann", []string{"customer"}, noon)
	i := slices.IndexFunc(options, func(o inspect.Option) bool { return o.Transition == "write" })
	assert.Truef(t, i >= 0 && options[i].Allowed, "what can be done is %+v", options)
}

func TestScheduled_RenamedTransition(t *testing.T) {
	t.Parallel()
	w := helpDesk(t)
	for _, creates := range []bool{true, false} {
		c := transitions.Command{Workflow: "desk", Transition: "write", Key: "k", Payload: []byte(`{"text":"T-1"}`),
			Options: transitions.Options{NotBefore: noon.Add(time.Hour)}}
		var inst *transitions.Instance
		if !creates {
			c.BusinessKey = "T-1"
			inst = &transitions.Instance{Tenant: "default", ID: transitions.InstanceID("default", "desk", "T-1"), Workflow: "desk", Definition: 1,
				BusinessKey: "T-1", State: "new", Version: 1, Data: []byte(`{}`), Open: true}
		}
		p, err := Prepare(c, w, fixedID)
		require.NoError(t, err)
		d := Decide(p, w, inst, noon)
		require.NotNilf(t, d.Flight, "got %+v", d)
		due, err := FlightOf(p.Begun(&d, noon), "default").Due(w)
		assert.Truef(t, err == nil && due.Creates == creates && (due.BusinessKey == "" || creates) && due.Instance == p.Instance,
			"creates %t: %+v, %v", creates, due, err)
	}
}

func TestAMessageBeginsOrGoesOnAsItsMappingSays(t *testing.T) {
	t.Parallel()
	w := helpDesk(t)
	routes := MessageRoutes([]*workflow.Workflow{w}, func(string) []*workflow.Workflow { return nil })["mail"]
	for body, creates := range map[string]bool{`{"text":"T-1"}`: true, `{"text":"again","ticket":"T-1"}`: false} {
		p, err := PrepareMessage(transitions.Message{Tenant: "default", Consumer: "mail", ID: "m", Body: []byte(body)}, routes, fixedID)
		assert.Truef(t, err == nil && p.Creates == creates && p.Instance == transitions.InstanceID("default", "desk", "T-1"),
			"%s: %+v, %v", body, p, err)
	}
}

func TestActivity_VersionOfStart(t *testing.T) {
	t.Parallel()
	w := helpDesk(t)
	for _, tt := range []struct{ from, via, want string }{{"new", "phoning", "phoning it"}, {"known", "posting", "posting it"}} {
		inst := &transitions.Instance{Tenant: "default", ID: madeUp, Workflow: "desk", Definition: 1, State: workflow.State(tt.from), Version: 1,
			Data: []byte(`{}`), Open: true}
		p, err := Prepare(transitions.Command{Workflow: "desk", Transition: "answer", Key: "k", Instance: madeUp,
			Payload: []byte(`{"text":"x"}`)}, w, fixedID)
		require.NoError(t, err)
		d := Decide(p, w, inst, noon)
		require.Truef(t, d.After != nil && string(d.After.State) == tt.via &&
			string(d.Flight.Request) == fmt.Sprintf(`{"payload":{"text":"x"},"from":%q}`,
				tt.from), "from %s: %+v", tt.from, d)
		f := FlightOf(p.Begun(&d, noon), "default")
		f.Attempt = 1
		s := f.Activity(w)
		assert.Truef(t, s != nil && s.Leaves(workflow.State(tt.from)), "from %s: what is to be done is %+v", tt.from, s)
		done := endOn(t, w, f, d.After, Outcome{Result: []byte(`{"text":"it"}`)})
		assert.Truef(t, done.After != nil && string(done.After.State) == tt.from && decoded[ticket](t, done.After.Data).Log[0] == tt.want,
			"from %s: %+v", tt.from, done)
		failed := endOn(t, w, f, d.After, failure(workflow.FailureError, "no", true))
		if failed.After == nil || string(failed.After.State) != tt.from || decoded[ticket](t, failed.After.Data).Log[0] != tt.via+" failed: no" {
			t.Errorf("from %s: %+v", tt.from, failed)
		}
		undos := slices.DeleteFunc(failed.Commands, func(c Planned) bool { return c.Flight.Phase != transitions.Undoing })
		if undoable := tt.from == "known"; len(undos) == 1 != undoable || undoable && undos[0].flight().Activity(w).Work.Via != "posting" {
			t.Errorf("from %s: undone by %+v", tt.from, undos)
		}
		kept := done.After.Links.Effects
		assert.Equalf(t, (tt.from == "known"), len(kept) == 1, "from %s: to be undone later are %+v", tt.from, kept)
	}
}

// A later failure is undone by the activity that had the effect.
func TestUndo_RenamedActivity(t *testing.T) {
	t.Parallel()
	w := helpDesk(t)
	inst := &transitions.Instance{Tenant: "default", ID: madeUp, Workflow: "desk", Definition: 1, State: "known", Version: 1,
		Data: []byte(`{}`), Open: true}
	do := func(transition, key string, o Outcome) Decision {
		t.Helper()
		p, err := Prepare(transitions.Command{Workflow: "desk", Transition: transition, Key: key, Instance: madeUp,
			Payload: []byte(`{"text":"x"}`)}, w, fixedID)
		require.NoError(t, err)
		d := Decide(p, w, inst, noon)
		require.NotNilf(t, d.After, "got %+v", d)
		f := FlightOf(p.Begun(&d, noon), "default")
		f.Attempt = 1
		d = endOn(t, w, f, d.After, o)
		inst = d.After
		return d
	}
	do("answer", "1", Outcome{Result: []byte(`{"text":"it"}`)})
	d := do("bill", "2", failure(workflow.FailureError, "no", false))
	assert.Truef(t, len(d.Commands) == 1 && d.Commands[0].flight().Activity(w).Work.Via == "posting" && len(inst.Links.Effects) == 0,
		"got %+v, %+v", d.Commands, inst.Links.Effects)
}

// An operator may say what has come of it, and only that.
func TestAResultIsThatOfTheActivityThatIsStuck(t *testing.T) {
	t.Parallel()
	w := helpDesk(t)
	stuck := &transitions.Record{Phase: transitions.Working, Transition: "answer", Request: []byte(`{"payload":{},"from":"known"}`)}
	assert.Nil(t, checkResult(stuck, w, []byte(`{"text":"it"}`)))
	stuck.Request = []byte(`{"payload":{},"from":"closed"}`)
	wantCode(t, errorOrNil(checkResult(stuck, w, []byte(`{"text":"it"}`))), workflow.Internal)
}

func errorOrNil(e *workflow.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// endOn decides the outcome of an attempt on an instance.
func endOn(t testing.TB, w *workflow.Workflow, f *InFlight, inst *transitions.Instance, o Outcome) Decision {
	t.Helper()
	p, err := f.Ending(o)
	require.NoError(t, err)
	return Decide(p, w, inst, noon)
}
