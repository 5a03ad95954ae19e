package decide

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The workflow of these tests: a text that is edited, printed and approved, each of which excludes from another.
func paper(t testing.TB) *workflow.Workflow {
	t.Helper()
	work := func(context.Context, *workflow.Attempt, trip, wish) (wish, error) { return wish{}, nil }
	failed := func(*workflow.Call, *trip, workflow.Failure) error { return nil }
	draft, all := workflow.From("draft"), workflow.From("draft", "printing", "sending")
	stay := workflow.Stay
	return built(t, workflow.Define("paper", 1,
		workflow.Start("begin", "draft", obey("begin")),
		workflow.On("edit", all, stay, obey("edit")),
		workflow.Do("print", draft, "printing", stay, work, obey("printed")).OrElse(stay, failed),
		workflow.Do("send", draft, "sending", stay, work, obey("sent")).OrElse(stay, failed).
			Undo(func(context.Context, *workflow.Attempt, trip, wish, *wish) error { return nil }),
		workflow.On("stop", workflow.From("printing", "sending"), "draft", obey("stop")),
		workflow.On("not-by-any", all, stay, obey("")).NotBy("edit"),
		workflow.On("not-by-last", all, stay, obey("")).NotByLast("edit"),
		workflow.On("not-by-printer", all, stay, obey("")).NotBy("print"),
		workflow.On("not-by-sender", all, stay, obey("")).NotBy("send"),
		workflow.On("not-by-last-sender", all, stay, obey("")).NotByLast("send"),
		workflow.On("end", draft, over, obey("end")),
	).Final(over))
}

// sheet is a paper as a test leads it on.
type sheet struct {
	t    *testing.T
	w    *workflow.Workflow
	inst *transitions.Instance
	keys int
}

func newSheet(t *testing.T) *sheet {
	s := &sheet{t: t, w: paper(t)}
	s.do("ann", "begin")
	return s
}

// try decides a command of an actor.
func (s *sheet) try(actor, transition string) (*Prepared, Decision) {
	s.t.Helper()
	s.keys++
	c := transitions.Command{Workflow: "paper", Transition: transition, Key: fmt.Sprint(s.keys), Actor: actor}
	if s.inst != nil {
		c.Instance = s.inst.ID
	}
	p, err := Prepare(c, s.w, fixedID)
	require.NoError(s.t, err)
	return p, Decide(p, s.w, s.inst, noon)
}

// do has it done, and returns the command in flight, if it is.
func (s *sheet) do(actor, transition string) *InFlight {
	s.t.Helper()
	p, d := s.try(actor, transition)
	require.Truef(s.t, d.After != nil, "%s by %s: %+v", transition, actor, d)
	s.inst = d.After
	if d.Flight == nil {
		return nil
	}
	f := FlightOf(p.Begun(&d, noon), p.Tenant)
	f.Attempt = 1
	return f
}

func (s *sheet) end(f *InFlight, o Outcome) Decision {
	s.t.Helper()
	d := endOn(s.t, s.w, f, s.inst, o)
	if d.After != nil {
		s.inst = d.After
	}
	return d
}

// wants holds who may do something against who should.
func (s *sheet) wants(transition string, may map[string]bool) {
	s.t.Helper()
	for actor, want := range may {
		_, d := s.try(actor, transition)
		if got := d.Err == nil; got != want || !got && d.Err.Code != workflow.SeparationOfDuties {
			s.t.Errorf("%s may %s: %t, %v; the actors are %v", actor, transition, got, d.Err, s.inst.Actors)
		}
	}
}

func TestTheLastOneWhoDidItIsExcluded(t *testing.T) {
	t.Parallel()
	s := newSheet(t)
	s.wants("not-by-last", map[string]bool{"ann": true})
	s.do("ann", "edit")
	s.wants("not-by-last", map[string]bool{"ann": false, "bob": true})
	s.do("bob", "edit")
	s.do("bob", "edit")
	s.wants("not-by-last", map[string]bool{"ann": true, "bob": false})
	s.wants("not-by-any", map[string]bool{"ann": false, "bob": false, "eve": true})
	before := clone(s.inst)
	s.do("ann", "edit")
	s.wants("not-by-last", map[string]bool{"ann": false, "bob": true})
	s.wants("not-by-any", map[string]bool{"ann": false, "bob": false, "eve": true})
	assert.Truef(t, fmt.Sprint(before.Actors) == "map[edit:[ann bob]]" && fmt.Sprint(s.inst.Actors) == "map[edit:[bob ann]]",
		"before %v, after %v", before.Actors, s.inst.Actors)
}

func TestActors_OfActivity(t *testing.T) {
	t.Parallel()
	result := Outcome{Result: []byte(`{}`)}
	no, unknown := failure(workflow.FailureError, "no", false), failure(workflow.FailureError, "who knows", true)
	for _, tt := range []struct {
		activity string
		outcome  Outcome
		done     bool
	}{
		{"print", result, true}, {"print", no, false}, {"print", unknown, true},
		{"send", result, true}, {"send", no, false}, {"send", unknown, false},
		{"send", Outcome{Result: []byte(`{"do":"refuse"}`)}, false}, {"print", Outcome{Result: []byte(`{"do":"refuse"}`)}, true},
	} {
		s := newSheet(t)
		f := s.do("ann", tt.activity)
		by := map[string]string{"print": "not-by-printer", "send": "not-by-sender"}[tt.activity]
		s.wants(by, map[string]bool{"ann": false, "bob": true}) // it is under way
		s.end(f, tt.outcome)
		s.wants(by, map[string]bool{"ann": !tt.done, "bob": true})
		assert.Emptyf(t, s.inst.Actors[tt.activity+accepted], "%s is still under way: %v", tt.activity, s.inst.Actors)
	}
}

// An abandoned undo leaves the effect, so its actor has done it.
func TestActors_FailedUndo(t *testing.T) {
	t.Parallel()
	for _, undone := range []bool{true, false} {
		s := newSheet(t)
		d := s.end(s.do("ann", "send"), failure(workflow.FailureError, "who knows", true))
		s.wants("not-by-sender", map[string]bool{"ann": true})
		var outcome Outcome
		if !undone {
			outcome = failure(workflow.FailureAbandoned, "given up", true)
		}
		s.end(d.Commands[0].flight(), outcome)
		s.wants("not-by-sender", map[string]bool{"ann": undone, "bob": true})
	}
}

// An operator who resolves an activity acts for its actor and for himself or herself.
func TestAnOperatorWhoResolvesHasDoneItToo(t *testing.T) {
	t.Parallel()
	for _, action := range []transitions.Action{transitions.Resolve, transitions.Abandon} {
		s := newSheet(t)
		f := s.do("ann", "print")
		o := transitions.Operation{Action: action, Target: transitions.CommandRef{Scope: f.Scope, Key: f.Key}}
		if action == transitions.Resolve {
			o.Result = []byte(`{}`)
		}
		p, err := Operate(transitions.Command{Key: "op", Actor: "eve", Instance: s.inst.ID, Workflow: "paper"}, o)
		require.NoError(t, err)
		p.Stuck = &transitions.Record{Scope: f.Scope, Key: f.Key, Status: transitions.FailedRetryable, Workflow: "paper", Transition: "print",
			Instance: s.inst.ID, Phase: transitions.Working, Attempt: 1, Stuck: transitions.StuckUnknown, Actor: "ann", Request: f.Request}
		d := Decide(p, s.w, s.inst, noon)
		require.NotNilf(t, d.After, "%+v", d)
		s.inst = d.After
		// Abandoned: nobody knows whether it has happened.
		s.wants("not-by-printer", map[string]bool{"ann": false, "eve": action == transitions.Abandon, "bob": true})
	}
}
