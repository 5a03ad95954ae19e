package pawltest_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestDuplicate(t *testing.T) {
	t.Parallel()
	s, c := run(t)
	command := transitions.Command{Key: "k", Instance: c.ID, Transition: "write", Payload: []byte(`{"text":"once"}`)}
	first, err := s.Submit(command)
	require.Truef(t, err == nil && first.Status == 200 && !first.Replayed && first.Position == 2 && first.Version == 2,
		"got %+v, %v", first, err)
	s.Skip(23 * time.Hour)
	again, err := s.Submit(command)
	first.Replayed = true
	assert.Truef(t, err == nil && reflect.DeepEqual(again, first), "the retry got %+v, %v, want %+v", again, err, first)
	other := command
	other.Payload = nil
	_, err = s.Submit(other)
	wantCode(t, err, workflow.KeyReused)
	s.Skip(time.Hour)
	_, err = s.Submit(command)
	wantCode(t, err, workflow.KeyExpired)
	_, err = s.Command("", "move:"+c.ID.String(), "k")
	wantCode(t, err, workflow.KeyExpired)
	wantSteps(t, c, "begin", "write", "remind")
}

func TestDuplicate_InFlight(t *testing.T) {
	t.Parallel()
	s, c := run(t)
	n := answers(s, "call", errBusy)
	command := transitions.Command{Key: "k", Instance: c.ID, Transition: "call"}
	accepted, err := s.Submit(command)
	require.Truef(t, err == nil && accepted.Status == 202 && accepted.InFlight() && accepted.Record.Phase == transitions.Working && *n == 0,
		"got %+v, %v after %d attempts", accepted, err, *n)
	s.Settle()
	again, err := s.Submit(command)
	assert.Truef(t, err == nil && again.Status == 202 && again.Replayed && again.Record.Status == transitions.FailedRetryable &&
		again.Record.Failure == errBusy.Error() && *n == 1, "got %+v, %v after %d attempts", again, err, *n)
	assert.Equal(t, transitions.Pending, accepted.Record.Status, "what the caller was given has changed under him")
	done := s.Await(accepted)
	again, err = s.Submit(command)
	assert.Truef(t, err == nil && string(again.Body) == string(done.Body) && again.Status == 200 && *n == 2,
		"got %+v, %v, want %s", again, err, done.Body)
}

func TestMalformedCommandsGetTheErrorsOfAnEngine(t *testing.T) {
	t.Parallel()
	s, c := run(t)
	for _, tt := range []struct {
		command transitions.Command
		want    workflow.Code
	}{
		{transitions.Command{Workflow: "cruise", Transition: "begin", Key: "k"}, workflow.WorkflowNotFound},
		{transitions.Command{Transition: "begin", Key: "k"}, workflow.WorkflowNotFound},
		{transitions.Command{Workflow: "move", Transition: "fly", Key: "k"}, workflow.TransitionNotFound},
		{transitions.Command{Instance: uuid.Max, Transition: "write", Key: "k"}, workflow.InstanceNotFound},
		{transitions.Command{Instance: c.ID, Transition: "write"}, workflow.KeyMissing},
		{transitions.Command{Tenant: "other", Instance: c.ID, Transition: "write", Key: "k"}, workflow.InstanceNotFound},
		{transitions.Command{Instance: c.ID, Transition: "write", Key: "k", Options: transitions.Options{Scope: "pawl:mine"}},
			workflow.ScopeInvalid},
	} {
		_, err := s.Submit(tt.command)
		wantCode(t, err, tt.want)
	}
	_, err := s.Instance("", uuid.Max)
	wantCode(t, err, workflow.InstanceNotFound)
	_, err = s.Command("", "s", "k")
	wantCode(t, err, workflow.CommandNotFound)
	_, err = s.Cancel("", "s", "k", "ann")
	wantCode(t, err, workflow.CommandNotFound)
	_, err = s.Operate(transitions.Command{Key: "k"}, transitions.Operation{Action: transitions.Retry,
		Target: transitions.CommandRef{Scope: "s", Key: "k"}})
	wantCode(t, err, workflow.CommandNotFound)
	_, err = s.Operate(transitions.Command{Key: "k", Instance: uuid.Max}, transitions.Operation{Action: transitions.Pause})
	wantCode(t, err, workflow.InstanceNotFound)
}

func TestAnInstanceStaysOnItsVersion(t *testing.T) {
	t.Parallel()
	s := pawltest.Run(t, moves(2), moves(1), shop)
	c := s.Start("move", "begin", nil)
	assert.Equal(t, 2, c.Instance().Definition, "it began with version")
	c.Do("write", nil)
	order := s.Start("order", "place", Cart{Total: 1})
	assert.Equal(t, Placed, order.State(), "another workflow")
}

// The same run twice is the same, to the byte.
func TestARunIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	play := func() any {
		s, c := run(t)
		answers(s, "call", errBusy, errBusy)
		c.Do("write", note{Text: "with a friend"})
		s.LoseWorker()
		s.Await(c.Do("call", nil))
		s.Skip(3 * time.Hour)
		return []any{s.Events(), s.InFlight(), c.History(), s.Now()}
	}
	first := play()
	for range 5 {
		require.Equal(t, play(), first, "and then")
	}
}

func TestMistakesInATestFailIt(t *testing.T) {
	t.Parallel()
	endless := func(name string, from, to workflow.State) workflow.Part[move] {
		return workflow.On(name, workflow.From(from), to, func(*workflow.Call, *move, workflow.None) error { return nil })
	}
	begun := func(tb pawltest.TB) (*pawltest.Sim, *pawltest.Case) {
		s := pawltest.Run(tb, moves(1))
		return s, s.Start("move", "begin", nil)
	}
	for want, use := range map[string]func(pawltest.TB){
		"is given twice":         func(tb pawltest.TB) { pawltest.Run(tb, moves(1), moves(1)) },
		"nothing starts it":      func(tb pawltest.TB) { pawltest.Run(tb, workflow.Define[move]("empty", 1)) },
		"clock does not go":      func(tb pawltest.TB) { s, _ := begun(tb); s.Skip(-1) },
		"not today":              func(tb pawltest.TB) { _, c := begun(tb); c.Do("write", note{Text: "refuse"}) },
		"move.begin: guard_ref":  func(tb pawltest.TB) { s, _ := begun(tb); s.Start("move", "begin", note{Text: "refuse"}) },
		"encode func":            func(tb pawltest.TB) { _, c := begun(tb); c.Do("write", func() {}) },
		"write: instance_not":    func(tb pawltest.TB) { s, _ := begun(tb); s.Case(uuid.Max).Do("write", nil) },
		"pawltest: instance_not": func(tb pawltest.TB) { s, _ := begun(tb); s.Case(uuid.Max).State() },
		"is not of type int":     func(tb pawltest.TB) { _, c := begun(tb); pawltest.Data[int](c) },
		`no activity "write"`: func(tb pawltest.TB) {
			s, _ := begun(tb)
			pawltest.Fake(s, "move", "write", func(context.Context, *workflow.Attempt, move, note) (note, error) { return note{}, nil })
		},
		"is not a result of the activity": func(tb pawltest.TB) {
			s, c := begun(tb)
			pawltest.Fake(s, "move", "call", func(context.Context, *workflow.Attempt, move, note) (int, error) { return 1, nil })
			s.Await(c.Do("call", nil))
		},
		"is not of type pawltest_test.Card": func(tb pawltest.TB) {
			s, c := begun(tb)
			pawltest.Fake(s, "move", "call", func(context.Context, *workflow.Attempt, move, Card) (note, error) { return note{}, nil })
			s.Await(c.Do("call", note{Text: "mum"}))
		},
		"waits for an operator (unknown_outcome)": func(tb pawltest.TB) {
			s, c := begun(tb)
			answers(s, "carry", context.DeadlineExceeded)
			s.Await(c.Do("carry", nil))
		},
		"this run has no command": func(tb pawltest.TB) {
			s, c := begun(tb)
			r := c.Do("carry", nil)
			r.Record.Key = "other"
			s.Await(r)
		},
		"does a timer without a wait cause itself": func(tb pawltest.TB) {
			s := pawltest.Run(tb, workflow.Define("endless", 1, workflow.Start("begin", "a",
				func(*workflow.Call, *move, workflow.None) error { return nil }),
				endless("tick", "a", "b"), endless("tock", "b", "a"), endless("end", "a", "over")).Final("over").
				After("t1", workflow.From("a"), 0, "tick").After("t2", workflow.From("b"), 0, "tock"))
			s.Start("endless", "begin", nil)
			s.Settle()
		},
	} {
		assert.Contains(t, failing(use), want, "the test is told")
	}
}

func TestPostgresHasTheTablesAndNothingInThem(t *testing.T) {
	t.Parallel()
	one, other := pawltest.Postgres(t), pawltest.Postgres(t)
	_, err := one.Exec(t.Context(), `INSERT INTO pawl.log (tenant, head) VALUES ('t', 1)`)
	require.NoError(t, err)
	var n int
	err = other.QueryRow(t.Context(), `SELECT count(*) FROM pawl.log`).Scan(&n)
	assert.Truef(t, err == nil && n == 0, "another test's database has %d rows, %v", n, err)
}

// The engine runs real activities, as it does in a service, and ends with its
// test.
func TestEngineRunsTheWorkflows(t *testing.T) {
	t.Parallel()
	e := pawltest.Engine(t, workflow.Define("order", 1,
		workflow.Start("place", Placed, func(_ *workflow.Call, o *Order, c Cart) error { o.Total = c.Total; return nil }),
		workflow.Do("pay", workflow.From(Placed), Paying, Paid, func(_ context.Context, a *workflow.Attempt, _ Order, _ Card) (string, error) {
			return "ch-" + a.Key, nil
		}, func(_ *workflow.Call, o *Order, id string) error { o.Charge = id; return nil }).
			OrElse(Unpaid, func(*workflow.Call, *Order, workflow.Failure) error { return nil }),
	).Final(Paid, Unpaid))
	placed, err := e.Submit(t.Context(), transitions.Command{Workflow: "order", Transition: "place", Key: "k", Payload: []byte(`{"total":5}`)})
	require.NoError(t, err)
	accepted, err := e.Submit(t.Context(), transitions.Command{Instance: placed.Instance, Transition: "pay", Key: "k"})
	require.Truef(t, err == nil && accepted.Status == 202, "got %+v, %v", accepted, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := e.Await(ctx, transitions.Ref{Scope: accepted.Record.Scope, Key: "k"})
	require.Truef(t, err == nil && r.Status == 200, "got %+v, %v", r, err)
	inst, err := e.Read().Instance(t.Context(), "", placed.Instance)
	assert.Truef(t, err == nil && inst.State == Paid, "got %+v, %v", inst, err)
}
