package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestTimersFireInOrderAtTheirTimes(t *testing.T) {
	t.Parallel()
	s, c := run(t)
	c.Do("write", note{Text: "till tomorrow", Until: pawltest.Begin.Add(20 * time.Hour)})
	other := s.Start("move", "begin", note{Until: pawltest.Begin.Add(2 * time.Hour)})
	want := []pawltest.Timer{{"reminder", "remind", pawltest.Begin.Add(time.Hour)}, {"term", "leave", pawltest.Begin.Add(20 * time.Hour)}}
	assert.Equal(t, want, c.Timers(), "the timers")
	s.Skip(10 * time.Hour)
	wantSteps(t, c, "begin", "write", "remind")
	wantSteps(t, other, "begin", "remind", "leave")
	var order []string
	for _, e := range s.Events() {
		order = append(order, fmt.Sprint(e.Transition, " ", e.At.Sub(pawltest.Begin)))
	}
	assert.Equal(t, "[begin 0s write 0s begin 0s remind 1h0m0s remind 1h0m0s leave 2h0m0s]", fmt.Sprint(order), "it went")
	c.Do("write", note{Until: pawltest.Begin.Add(40 * time.Hour)}) // puts it off
	s.Skip(20 * time.Hour)
	assert.Truef(t, c.State() == "ready" && elapsed(s) == 30*time.Hour && len(c.Timers()) == 1,
		"in %s with %+v after %s", c.State(), c.Timers(), elapsed(s))
	s.Skip(10 * time.Hour)
	if h := c.History(); c.State() != "gone" || !h[len(h)-1].At.Equal(s.Now()) || h[len(h)-1].Actor != "pawl:timer" || len(c.Timers()) != 0 {
		t.Errorf("in %s with %+v", c.State(), h[len(h)-1])
	}
}

// Each way that attempts can end, and what becomes of the case and its clock.
func TestAttempts(t *testing.T) {
	t.Parallel()
	final := workflow.Final(errors.New("no such number"))
	for _, tt := range []struct {
		name     string
		activity string
		lost     int
		errs     []error
		attempts int
		after    time.Duration
		note     string
	}{
		{"at once", "call", 0, nil, 1, 0, "called at attempt 1"},
		{"at the second", "call", 0, []error{errBusy}, 2, time.Second, "called at attempt 2"},
		{"at the third", "call", 0, []error{errBusy, errBusy}, 3, 3 * time.Second, "called at attempt 3"},
		{"never", "call", 0, []error{errBusy, errBusy, errBusy}, 3, 3 * time.Second, "failed after 3, unknown true: the line is busy"},
		{"not again", "call", 0, []error{final}, 1, 0, "failed after 1, unknown false: no such number"},
		{"by another worker", "call", 1, nil, 2, 30 * time.Second, "called at attempt 2"},
		{"by a third worker", "call", 2, []error{errBusy}, 3, time.Minute, "called at attempt 3"},
		{"by no worker", "call", 3, nil, 3, 90 * time.Second, "abandoned after 3, unknown true: its worker was lost 3 times"},
		{"after a check that found nothing", "lift", 1, nil, 2, 30 * time.Second, "lifted at attempt 2"},
		{"after nothing was done", "carry", 0, nil, 1, 0, "carried at attempt 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, c := run(t)
			n := answers(s, tt.activity, tt.errs...)
			pawltest.FakeUndo(s, "move", "call", func(context.Context, *workflow.Attempt, move, note, *note) error { return nil })
			for range tt.lost {
				s.LoseWorker()
			}
			before := c.Instance().Version
			r := s.Await(c.Do(tt.activity, nil))
			assert.Truef(t, *n == tt.attempts && elapsed(s) == tt.after && r.Version == before+2,
				"%d attempts and %s, version %d; want %d and %s", *n, elapsed(s), r.Version, tt.attempts, tt.after)
			wantNotes(t, c, "begin here", tt.note)
		})
	}
}

// An attempt gets what an engine gives it, on every attempt the same key.
func TestAnAttemptKnowsItsEffect(t *testing.T) {
	t.Parallel()
	s, c := run(t)
	var seen []workflow.Attempt
	pawltest.Fake(s, "move", "call", func(ctx context.Context, a *workflow.Attempt, d move, n note) (note, error) {
		seen = append(seen, workflow.Attempt{Key: a.Key, Number: a.Number, Tenant: a.Tenant, Instance: a.Instance, Actor: a.Actor})
		_, bounded := ctx.Deadline()
		assert.Truef(t, bounded && n.Text == "mum" && len(d.Notes) == 1, "it got %+v, %+v, bounded %v", d, n, bounded)
		assert.NoError(t, a.Report(map[string]int{"done": len(seen)}))
		if len(seen) < 2 {
			return note{}, errBusy
		}
		return note{}, nil
	})
	accepted := c.As("ann").Do("call", note{Text: "mum"})
	key := transitions.EffectKey(transitions.Ref{Tenant: "default", Scope: accepted.Record.Scope, Key: accepted.Record.Key})
	s.Settle()
	r := recordOf(t, s, accepted)
	assert.Equalf(t, `{"done":1}`, string(r.Progress), "the progress is %s", r.Progress)
	s.Await(accepted)
	want := []workflow.Attempt{{Key: key, Number: 1, Tenant: "default", Instance: c.ID, Actor: "ann"},
		{Key: key, Number: 2, Tenant: "default", Instance: c.ID, Actor: "ann"}}
	assert.Equal(t, want, seen)
}

// A worker is lost after the effect. Where it can be looked up, it is found and
// not repeated.
func TestACheckFindsWhatALostWorkerHasDone(t *testing.T) {
	t.Parallel()
	s, c := run(t)
	done := map[string]bool{}
	pawltest.Fake(s, "move", "lift", func(_ context.Context, a *workflow.Attempt, _ move, _ note) (note, error) {
		assert.False(t, done[a.Key], "done twice")
		done[a.Key] = true
		return note{Text: "by the first"}, nil
	})
	pawltest.FakeCheck(s, "move", "lift", func(_ context.Context, a *workflow.Attempt, _ move, _ note) (*note, error) {
		if !done[a.Key] {
			return nil, nil
		}
		return &note{Text: "found"}, nil
	})
	s.LoseWorker()
	accepted := c.Do("lift", nil)
	s.Skip(29 * time.Second)
	r := recordOf(t, s, accepted)
	assert.Truef(t, r.Status == transitions.Processing && r.Attempt == 1, "while the lease lasts: %+v", r)
	s.Skip(time.Second)
	wantNotes(t, c, "begin here", "lifted found")
}

func TestAtMostOnce_Stuck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		operation transitions.Operation
		state     workflow.State
		note      string
	}{
		{transitions.Operation{Action: transitions.Retry}, "ready", "carried at attempt 2"},
		{transitions.Operation{Action: transitions.Resolve, Result: []byte(`{"text":"by hand"}`)}, "ready", "carried by hand"},
		{transitions.Operation{Action: transitions.Abandon, Reason: "nobody knows"}, "ready",
			"abandoned after 1, unknown true: given up by eve: nobody knows"},
	} {
		t.Run(string(tt.operation.Action), func(t *testing.T) {
			s, c := run(t)
			n := answers(s, "carry")
			s.LoseWorker()
			accepted := c.Do("carry", nil)
			s.Skip(time.Minute)
			stuck := s.Stuck()
			require.Truef(t, len(stuck) == 1 && stuck[0].Stuck == transitions.StuckUnknown && *n == 1 && c.State() == "carrying",
				"stuck are %+v after %d attempts, in %s", stuck, *n, c.State())
			o := tt.operation
			o.Target = transitions.CommandRef{Scope: stuck[0].Scope, Key: stuck[0].Key}
			command := transitions.Command{Key: "op", Actor: "eve"}
			for range 2 {
				r, err := s.Operate(command, o)
				require.Truef(t, err == nil && r.Status == 200, "got %+v, %v", r, err)
			}
			command.Key = "again"
			if r, err := s.Operate(command, o); err != nil || workflow.CodeOf(r.Err()) != workflow.NotStuck {
				t.Errorf("what does not wait any more: %+v, %v", r, err)
			}
			r := s.Await(accepted)
			assert.Truef(t, len(s.Stuck()) == 0 && c.State() == tt.state && r.Refused() == (o.Action == transitions.Abandon),
				"in %s with %s, stuck are %+v", c.State(), r.Body, s.Stuck())
			wantNotes(t, c, "begin here", tt.note)
		})
	}
}
