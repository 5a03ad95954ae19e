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

func TestMain(m *testing.M) { pawltest.Main(m) }

// The workflow of these tests: a move, with everything that can be in flight.

type move struct {
	Notes []string  `json:"notes,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

type note struct {
	Text  string    `json:"text,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

var errBusy = errors.New("the line is busy")

func write(what string) func(*workflow.Call, *move, note) error {
	return func(c *workflow.Call, d *move, n note) error {
		d.Notes = append(d.Notes, what+" "+n.Text)
		if !n.Until.IsZero() {
			d.Until = n.Until
		}
		switch n.Text {
		case "refuse":
			return workflow.Refuse("not today")
		case "panic":
			panic("secret of the house")
		case "with a friend":
			c.Spawn(workflow.Child{Workflow: "move", Transition: "begin", Payload: note{Text: "friend"}, End: "helped"})
		}
		return nil
	}
}

func noteFailure(_ *workflow.Call, d *move, f workflow.Failure) error {
	d.Notes = append(d.Notes, fmt.Sprintf("%s after %d, unknown %v: %s", f.Kind, f.Attempts, f.Unknown, f.Message))
	return nil
}

func moves(version int) *workflow.Definition[move] {
	busy := func(context.Context, *workflow.Attempt, move, note) (note, error) { return note{}, errBusy }
	three := workflow.Retry{Attempts: 3, First: time.Second, Max: time.Minute}
	ready := workflow.From("ready")
	return workflow.Define("move", version,
		workflow.Start("begin", "ready", write("begin")),
		workflow.Start("book", "ready", write("book")).BusinessKey(func(n note) string { return n.Text }),
		workflow.On("write", workflow.From("ready", "calling", "carrying"), workflow.Stay, write("write")),
		workflow.On("helped", ready, workflow.Stay, func(_ *workflow.Call, d *move, e workflow.Ended[move]) error {
			d.Notes = append(d.Notes, fmt.Sprint("helped by ", e.Data.Notes))
			return nil
		}),
		// call can be repeated and undone; carry must not happen twice; lift can be looked up.
		workflow.Do("call", ready, "calling", "ready", busy, write("called")).OrElse("ready", noteFailure).Retry(three).
			Undo(func(context.Context, *workflow.Attempt, move, note, *note) error { return errBusy }),
		workflow.Do("carry", ready, "carrying", "ready", busy, write("carried")).OrElse("ready", noteFailure).Retry(three).AskOperator(),
		workflow.Do("lift", ready, "lifting", "ready", busy, write("lifted")).OrElse("ready", noteFailure).Retry(three).
			Check(func(context.Context, *workflow.Attempt, move, note) (*note, error) { return nil, nil }),
		workflow.On("remind", ready, workflow.Stay, write("remind")),
		workflow.On("leave", workflow.From("ready", "calling", "carrying", "lifting"), "gone", write("leave")),
	).Final("gone").After("reminder", ready, time.Hour, "remind").At("term", ready, func(d move) time.Time { return d.Until }, "leave")
}

func run(t *testing.T) (*pawltest.Sim, *pawltest.Case) {
	t.Helper()
	s := pawltest.Run(t, moves(1))
	return s, s.Start("move", "begin", note{Text: "here"})
}

// answers fakes an activity that gives the errors, one per attempt, and then
// succeeds. It returns the counts of the attempts.
func answers(s *pawltest.Sim, activity string, errs ...error) *int {
	n := new(int)
	pawltest.Fake(s, "move", activity, func(context.Context, *workflow.Attempt, move, note) (note, error) {
		*n++
		if *n <= len(errs) && errs[*n-1] != nil {
			return note{}, errs[*n-1]
		}
		return note{Text: fmt.Sprint("at attempt ", *n)}, nil
	})
	return n
}

func wantNotes(t *testing.T, c *pawltest.Case, want ...string) {
	t.Helper()
	got := pawltest.Data[move](c).Notes
	assert.Equalf(t, fmt.Sprintf("%q", want), fmt.Sprintf("%q", got), "the notes are %q, want %q", got, want)
}

func wantSteps(t *testing.T, c *pawltest.Case, want ...string) {
	t.Helper()
	got := c.Steps()
	assert.Equalf(t, fmt.Sprint(want), fmt.Sprint(got), "the steps are %v, want %v", got, want)
}

func wantCode(t *testing.T, err error, want workflow.Code) {
	t.Helper()
	assert.Equal(t, want, workflow.CodeOf(err), err)
}

func elapsed(s *pawltest.Sim) time.Duration { return s.Now().Sub(pawltest.Begin) }

// failing runs what must fail the test, and returns with what.
func failing(use func(pawltest.TB)) (message string) {
	defer func() { message = fmt.Sprint(recover()) }()
	use(pawltest.Example)
	return ""
}

func recordOf(t *testing.T, s *pawltest.Sim, r transitions.Receipt) transitions.Record {
	t.Helper()
	require.NotNilf(t, r.Record, "it is not in flight: %+v", r)
	record, err := s.Command("", r.Record.Scope, r.Record.Key)
	require.NoError(t, err)
	return record
}
