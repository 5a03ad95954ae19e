package workflow

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type account struct {
	Due     int            `json:"due"`
	Tried   int            `json:"tried"`
	Charges []string       `json:"charges,omitempty"`
	Notes   map[string]int `json:"notes,omitempty"`
}

type bill struct {
	Amount int      `json:"amount" validate:"gte=0"`
	Tags   []string `json:"tags"`
}

type charge struct {
	ID    string         `json:"id"`
	Parts []int          `json:"parts"`
	By    map[string]int `json:"by"`
}

type (
	chargeWork = func(context.Context, *Attempt, account, bill) (charge, error)
	chargeDone = func(*Call, *account, charge) error
)

func charged(context.Context, *Attempt, account, bill) (charge, error) {
	return charge{ID: "ch-1"}, nil
}

func booked(_ *Call, a *account, c charge) error {
	a.Charges = append(a.Charges, c.ID)
	return nil
}

func noted(_ *Call, a *account, f Failure) error {
	a.Tried = f.Attempts
	return nil
}

// paying declares an activity from "open" through "paying" to "paid", "partly"
// or, when it fails, "unpaid".
func paying(work chargeWork, done chargeDone) *Activity[account, bill, charge] {
	return Do("pay", From("open"), "paying", "paid", work, done).Or("partly").OrElse("unpaid", noted)
}

// payStep is the step of that activity in a workflow that is sound.
func payStep(t testing.TB, pay Part[account]) *Step {
	t.Helper()
	w, err := Define("account", 1,
		Start("begin", "open", func(*Call, *account, None) error { return nil }), pay,
		On("cancel", From("paying", "unpaid", "partly"), "paid", func(*Call, *account, None) error { return nil }),
	).Final("paid").Roles("clerk").Build()
	require.NoError(t, err)
	return w.Leaving("pay", "open")
}

var (
	openFacts   = Facts{Actor: "ann", State: "open", Version: 1}
	payingFacts = Facts{Actor: "ann", State: "paying", Version: 2}
)

func TestAcceptGoesToTheStateInBetween(t *testing.T) {
	s := payStep(t, paying(charged, booked))
	out, err := s.Run(openFacts, []byte(`{"due":5}`), decoded(t, s, `{"amount":5}`))
	assert.Truef(t, err == nil && reflect.DeepEqual(out, Outcome{To: "paying", Data: []byte(`{"due":5,"tried":0}`)}),
		"%+v, %v", out, err)
}

func TestAcceptRunsItsActionAndItsGuards(t *testing.T) {
	s := payStep(t, paying(charged, booked).
		Accept(func(c *Call, a *account, b bill) error {
			if b.Amount > a.Due {
				return Refuse("only %d are due", a.Due)
			}
			a.Due -= b.Amount
			c.Emit("account.reserved", b.Amount)
			c.Because("asked by " + c.Actor())
			return nil
		}).
		Guard("something is due", func(_ *Call, a account) error {
			if a.Due == 0 {
				return errors.New("nothing is due")
			}
			return nil
		}))
	out, err := s.Run(openFacts, []byte(`{"due":5}`), decoded(t, s, `{"amount":3}`))
	want := Outcome{To: "paying", Data: []byte(`{"due":2,"tried":0}`), Reason: "asked by ann",
		Events: []Emitted{{"account.reserved", []byte("3")}}}
	assert.Truef(t, err == nil && reflect.DeepEqual(out, want), "%+v, %v", out, err)
	for _, c := range []struct{ data, payload, text string }{
		{`{"due":5}`, `{"amount":6}`, "only 5 are due"}, {`{}`, `{}`, "nothing is due"},
	} {
		_, err := s.Run(openFacts, []byte(c.data), decoded(t, s, c.payload))
		e, ok := errors.AsType[*Error](err)
		assert.Truef(t, ok && e.Code == GuardRefused && e.Message == c.text, "%s: %v", c.payload, err)
	}
}

// Where an activity goes is decided at its end: neither the accept nor the
// failure can choose.
func TestOnlyDoneChoosesATarget(t *testing.T) {
	s := payStep(t, paying(charged, func(c *Call, _ *account, r charge) error { c.Goto(State(r.ID)); return nil }).
		Accept(func(c *Call, _ *account, _ bill) error { c.Goto("paid"); return nil }).
		OrElse("unpaid", func(c *Call, _ *account, _ Failure) error { c.Goto("partly"); return nil }))
	_, err := s.Run(openFacts, nil, decoded(t, s, `{}`))
	assert.Equalf(t, Internal, CodeOf(err), "the accept: %v", err)
	_, err = s.Fail(payingFacts, nil, Failure{})
	assert.Equalf(t, Internal, CodeOf(err), "the failure: %v", err)
	for id, ok := range map[string]bool{"paid": true, "partly": true, "paying": false, "unpaid": false, "open": false} {
		out, err := s.Done(payingFacts, nil, []byte(`{"id":"`+id+`"}`))
		assert.Truef(t, (!ok || err == nil && out.To == State(id)) && (ok || CodeOf(err) == Internal),
			"Goto(%q): %q, %v", id, out.To, err)
	}
}

func TestDefaultsOfAnActivity(t *testing.T) {
	for name, c := range map[string]struct {
		declare func(*Activity[account, bill, charge]) Part[account]
		want    Work
	}{
		"nothing said": {
			func(a *Activity[account, bill, charge]) Part[account] { return a },
			Work{Timeout: time.Minute, Retry: Retry{Attempts: 10, First: time.Second, Max: 5 * time.Minute}}},
		"all said": {
			func(a *Activity[account, bill, charge]) Part[account] {
				return a.Timeout(2 * time.Second).Retry(Retry{Attempts: 1, First: 3, Max: 4}).Concurrency(7).AskOperator().Undoes("pay").Settles("pay").
					Undo(func(context.Context, *Attempt, account, bill, *charge) error { return nil }).
					Check(func(context.Context, *Attempt, account, bill) (*charge, error) { return nil, nil })
			},
			Work{Timeout: 2 * time.Second, Retry: Retry{Attempts: 1, First: 3, Max: 4}, Concurrency: 7, AskOperator: true,
				Undoable: true, Checkable: true, Undoes: []string{"pay"}, Settles: []string{"pay"}}},
		"a long first wait": {
			func(a *Activity[account, bill, charge]) Part[account] { return a.Retry(Retry{First: time.Hour}) },
			Work{Timeout: time.Minute, Retry: Retry{Attempts: 10, First: time.Hour, Max: time.Hour}}},
	} {
		got := *payStep(t, c.declare(paying(charged, booked))).Work
		got.body, c.want.Via, c.want.Failed = nil, "paying", "unpaid"
		assert.Equal(t, c.want, got, name)
	}
}

// An activity is guarded and described as every other transition is.
func TestActivityIsATransition(t *testing.T) {
	s := payStep(t, paying(charged, booked).Doc("d").Role("clerk").NotBy("cancel").
		Guard("g", func(*Call, account) error { return nil }))
	assert.Truef(t, s.Doc == "d" && s.Roles[0] == "clerk" && s.NotBy[0] == "cancel" && s.Guards[0] == "g" && !s.Start &&
		slices.Equal(s.From, From("open")) && slices.Equal(s.To, From("paid", "partly")),
		"%+v", s)
	_, err := s.Decode([]byte(`{"amount":-1}`))
	assert.Equal(t, InvalidPayload, CodeOf(err), err)
	schema := schemaOf(t, s)
	assert.True(t, accepts(t, schema, `{"amount":-1}`) != nil && accepts(t, schema, `{"amount":1}`) == nil, "the schema")
}

// What is added to an activity later is not in a workflow that is built.
func TestBuiltActivityDoesNotChange(t *testing.T) {
	pay := paying(charged, booked).Undoes("pay").Settles("pay").Undo(func(context.Context, *Attempt, account, bill, *charge) error { return nil })
	s := payStep(t, pay)
	pay.Timeout(time.Hour).Concurrency(1).AskOperator().Undoes("x").Settles("x").Or("open").Role("clerk").OrElse("open", nil).
		Accept(func(*Call, *account, bill) error { return errors.New("late") }).
		Undo(nil)
	if w := s.Work; w.Timeout != time.Minute || w.Concurrency != 0 || w.AskOperator || len(w.Undoes) != 1 || len(w.Settles) != 1 || w.Failed != "unpaid" ||
		len(s.To) != 2 || len(s.Roles) > 0 {
		t.Errorf("the step changed: %+v %+v", s, s.Work)
	}
	_, err := s.Run(openFacts, nil, decoded(t, s, `{}`))
	assert.NoError(t, err, "a later accept")
	assert.NoError(t, s.Work.Undo(t.Context(), NewAttempt(Attempt{}, nil), nil, nil, nil))
	out, err := s.Fail(payingFacts, nil, Failure{})
	assert.Truef(t, err == nil && out.To == "unpaid", "a later OrElse: %+v, %v", out, err)
}
