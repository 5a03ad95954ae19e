package workflow

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWorkGetsWhatWasAskedAndGivesItsResult(t *testing.T) {
	type key struct{}
	var gotData account
	var gotPayload bill
	s := payStep(t, paying(func(ctx context.Context, a *Attempt, d account, p bill) (charge, error) {
		gotData, gotPayload = d, p
		return charge{ID: a.Key + ctx.Value(key{}).(string), By: map[string]int{"z": 1, "a": a.Number}}, a.Report("half")
	}, booked))
	var progress []string
	attempt := NewAttempt(Attempt{Key: "k", Number: 3}, func(p []byte) { progress = append(progress, string(p)) })
	result, err := s.Work.Do(context.WithValue(t.Context(), key{}, "!"), attempt,
		[]byte(`{"due":5,"of an earlier build":1}`), []byte(`{"amount":4,"tags":["x"]}`))
	assert.Truef(t, err == nil && string(result) == `{"id":"k!","parts":[],"by":{"a":3,"z":1}}`, "result %s, %v", result, err)
	assert.Truef(t, reflect.DeepEqual(gotData, account{Due: 5}) && reflect.DeepEqual(gotPayload, bill{4, []string{"x"}}),
		"the work got %+v and %+v", gotData, gotPayload)
	assert.Truef(t, slices.Equal(progress, []string{`"half"`}), "progress %q", progress)
}

func TestTheWorksOwnErrorsComeThrough(t *testing.T) {
	mine := errors.New("mine")
	s := payStep(t, paying(func(context.Context, *Attempt, account, bill) (charge, error) { return charge{ID: "x"}, mine }, booked).
		Undo(func(context.Context, *Attempt, account, bill, *charge) error { return mine }).
		Check(func(context.Context, *Attempt, account, bill) (*charge, error) { return &charge{}, mine }))
	a := NewAttempt(Attempt{}, nil)
	result, err := s.Work.Do(t.Context(), a, nil, nil)
	assert.Truef(t, err == mine && result == nil, "Do: %s, %v", result, err)
	err = s.Work.Undo(t.Context(), a, nil, nil, nil)
	assert.Truef(t, err == mine, "Undo: %v", err)
	result, happened, err := s.Work.Check(t.Context(), a, nil, nil)
	assert.Truef(t, err == mine && !happened && result == nil, "Check: %s, %t, %v", result, happened, err)
}

// Data that cannot be decoded or encoded is a defect, and the work is not started.
func TestWorkOnWhatDoesNotFitIsADefect(t *testing.T) {
	ran := false
	run := func() { ran = true }
	w, err := Define("w", 1, Start("begin", "open", func(*Call, *account, None) error { return nil }),
		Do("weigh", From("open"), "weighing", "done",
			func(context.Context, *Attempt, account, bill) (float64, error) { run(); return math.NaN(), nil },
			func(*Call, *account, float64) error { run(); return nil },
		).OrElse("done", func(*Call, *account, Failure) error { run(); return nil }).
			Undo(func(context.Context, *Attempt, account, bill, *float64) error { run(); return nil }).
			Check(func(context.Context, *Attempt, account, bill) (*float64, error) { run(); return nil, nil }),
	).Final("done").Build()
	require.NoError(t, err)
	s := w.Leaving("weigh", "open")
	a := NewAttempt(Attempt{}, nil)
	bad := []byte(`{"due":"much","amount":"much"}`)
	for name, try := range map[string]func() error{
		"Do with other data":       func() error { _, err := s.Work.Do(t.Context(), a, bad, nil); return err },
		"Do with another payload":  func() error { _, err := s.Work.Do(t.Context(), a, nil, bad); return err },
		"Undo of another payload":  func() error { return s.Work.Undo(t.Context(), a, nil, bad, nil) },
		"Undo of another result":   func() error { return s.Work.Undo(t.Context(), a, nil, nil, bad) },
		"Check of another payload": func() error { _, _, err := s.Work.Check(t.Context(), a, nil, bad); return err },
		"Done with other data":     func() error { _, err := s.Done(payingFacts, bad, []byte(`1`)); return err },
		"Done with another result": func() error { _, err := s.Done(payingFacts, nil, bad); return err },
		"Fail with other data":     func() error { _, err := s.Fail(payingFacts, bad, Failure{}); return err },
	} {
		ran = false
		want := Internal
		if strings.HasSuffix(name, "with other data") { // another build may be able to read it
			want = NotOnThisNode
		}
		if err := try(); CodeOf(err) != want || errors.Is(err, ErrUnreadable) != (want == NotOnThisNode) || ran {
			t.Errorf("%s: ran %t, %v", name, ran, err)
		}
	}
	_, err = s.Work.Do(t.Context(), a, nil, nil)
	assert.Truef(t, CodeOf(err) == Internal && ran, "a result that JSON cannot say: %v", err)
}

func TestDoneMakesTheResultAPartOfTheData(t *testing.T) {
	s := payStep(t, paying(charged, func(c *Call, a *account, r charge) error {
		if len(r.Parts) > 1 {
			c.Goto("partly")
		}
		c.Emit("account.charged", r.ID)
		c.Return(r.ID)
		return booked(c, a, r)
	}))
	out, err := s.Done(payingFacts, []byte(`{"due":5,"charges":["ch-0"]}`), []byte(`{"id":"ch-1","parts":[2,3]}`))
	want := Outcome{To: "partly", Data: []byte(`{"due":5,"tried":0,"charges":["ch-0","ch-1"]}`),
		Result: []byte(`"ch-1"`), Events: []Emitted{{"account.charged", []byte(`"ch-1"`)}}}
	assert.Truef(t, err == nil && reflect.DeepEqual(out, want), "%+v, %v", out, err)
}

func TestDoneMayRefuseAResult(t *testing.T) {
	s := payStep(t, paying(charged, func(*Call, *account, charge) error { return errors.New("that is not our currency") }))
	_, err := s.Done(payingFacts, nil, []byte(`{}`))
	e, ok := errors.AsType[*Error](err)
	assert.True(t, ok && e.Code == GuardRefused && e.Message == "that is not our currency", err)
}

func TestFailGoesToTheStateOfOrElse(t *testing.T) {
	s := payStep(t, paying(charged, booked).OrElse("unpaid", func(c *Call, a *account, f Failure) error {
		a.Tried = f.Attempts
		c.Because(f.Message)
		return nil
	}))
	out, err := s.Fail(payingFacts, []byte(`{"due":5}`), Failure{Kind: FailureError, Message: "card refused", Attempts: 3})
	want := Outcome{To: "unpaid", Data: []byte(`{"due":5,"tried":3}`), Reason: "card refused"}
	assert.Truef(t, err == nil && reflect.DeepEqual(out, want), "%+v, %v", out, err)
}

func TestFailCannotRefuse(t *testing.T) {
	s := payStep(t, paying(charged, booked).OrElse("unpaid", func(*Call, *account, Failure) error { return Refuse("no") }))
	_, err := s.Fail(payingFacts, nil, Failure{})
	assert.True(t, CodeOf(err) == Internal && strings.Contains(err.Error(), `the failure action of "pay" refused: guard_refused: no`),
		err)
}

func TestUndoKnowsTheResultWhereItIsKnown(t *testing.T) {
	var got []*charge
	s := payStep(t, paying(charged, booked).
		Undo(func(_ context.Context, _ *Attempt, _ account, _ bill, r *charge) error {
			got = append(got, r)
			return nil
		}))
	for _, result := range [][]byte{nil, []byte(`{"id":"ch-1","parts":null,"by":null}`), []byte(`{}`)} {
		assert.NoError(t, s.Work.Undo(t.Context(), NewAttempt(Attempt{}, nil), nil, nil, result))
	}
	assert.Equal(t, []*charge{nil, {ID: "ch-1"}, {}}, got)
}

func TestCheckTellsWhetherItHappened(t *testing.T) {
	s := payStep(t, paying(charged, booked).
		Check(func(_ context.Context, _ *Attempt, _ account, p bill) (*charge, error) {
			if p.Amount == 0 {
				return nil, nil
			}
			return &charge{ID: "found"}, nil
		}))
	result, happened, err := s.Work.Check(t.Context(), NewAttempt(Attempt{}, nil), nil, []byte(`{"amount":1}`))
	assert.Truef(t, err == nil && happened && string(result) == `{"id":"found","parts":[],"by":{}}`,
		"%s, %t, %v", result, happened, err)
	result, happened, err = s.Work.Check(t.Context(), NewAttempt(Attempt{}, nil), nil, []byte(`{}`))
	assert.Truef(t, err == nil && !happened && result == nil, "%s, %t, %v", result, happened, err)
}

// Deciding again gives the same result, even if a function changes its arguments in place or keeps a part of them in the data.
func TestWork_NoSharedState(t *testing.T) {
	spoil := func(b bill) {
		for i := range b.Tags {
			b.Tags[i] += "!"
		}
	}
	s := payStep(t, paying(func(_ context.Context, _ *Attempt, d account, b bill) (charge, error) {
		spoil(b)
		d.Notes["seen"]++
		return charge{ID: strings.Join(b.Tags, ","), By: d.Notes}, nil
	}, func(_ *Call, a *account, r charge) error {
		r.By["seen"]++
		r.Parts[0]++
		a.Notes = r.By
		return nil
	}).Accept(func(_ *Call, a *account, b bill) error {
		spoil(b)
		a.Charges = b.Tags
		return nil
	}))
	data, payload, result := []byte(`{"notes":{"seen":1}}`), []byte(`{"tags":["x"]}`), []byte(`{"parts":[1],"by":{"seen":1}}`)
	p := decoded(t, s, string(payload))
	for range 3 {
		out, err := s.Run(openFacts, data, p)
		require.Truef(t, err == nil && string(out.Data) == `{"due":0,"tried":0,"charges":["x!"],"notes":{"seen":1}}`,
			"accept: %s, %v", out.Data, err)
		got, err := s.Work.Do(t.Context(), NewAttempt(Attempt{}, nil), data, payload)
		require.Truef(t, err == nil && string(got) == `{"id":"x!","parts":[],"by":{"seen":2}}`, "work: %s, %v", got, err)
		out, err = s.Done(payingFacts, data, result)
		require.Truef(t, err == nil && string(out.Data) == `{"due":0,"tried":0,"notes":{"seen":2}}`, "done: %s, %v", out.Data, err)
	}
	if string(data) != `{"notes":{"seen":1}}` || string(payload) != `{"tags":["x"]}` || string(result) != `{"parts":[1],"by":{"seen":1}}` {
		t.Errorf("the stored bytes changed: %s %s %s", data, payload, result)
	}
}

func TestRetryCeilingDoublesUpToItsMaximum(t *testing.T) {
	for _, c := range []struct {
		retry    Retry
		failures int
		want     time.Duration
	}{
		{Retry{First: 1, Max: 5}, 1, 1}, {Retry{First: 1, Max: 5}, 2, 2}, {Retry{First: 1, Max: 5}, 3, 4}, {Retry{First: 1, Max: 5}, 4, 5},
		{Retry{First: 1, Max: 5}, 1000, 5}, {Retry{First: 1, Max: 5}, 0, 1}, {Retry{First: 2, Max: 5}, 2, 4},
		{Retry{First: time.Hour, Max: time.Hour}, 1, time.Hour},
		{Retry{First: 1, Max: math.MaxInt64}, 63, 1 << 62}, {Retry{First: 1, Max: math.MaxInt64}, 64, math.MaxInt64},
	} {
		assert.Equalf(t, c.want, c.retry.Ceiling(c.failures), "%v after %d failures", c.retry, c.failures)
	}
}

func TestProgress_Invalid(t *testing.T) {
	assert.NoError(t, NewAttempt(Attempt{}, nil).Report(1))
	reported := false
	err := NewAttempt(Attempt{}, func([]byte) { reported = true }).Report(math.NaN())
	assert.Truef(t, err != nil && !reported, "reported %t, %v", reported, err)
}

func TestFinalErrors(t *testing.T) {
	cause := &Error{Code: NotFound, Message: "no such card"}
	final := Final(cause)
	wrapped := errors.Join(errors.New("charge"), final)
	assert.True(t, Final(nil) == nil && !IsFinal(nil) && !IsFinal(cause) && IsFinal(final) && IsFinal(wrapped) && IsFinal(Final(wrapped)),
		"IsFinal")
	assert.Equalf(t, cause.Error(), final.Error(), "its text is %q", final)
	e, ok := errors.AsType[*Error](wrapped)
	assert.True(t, ok && e == cause, "the cause is lost")
}

// Fuzzing the ending: whatever was stored, Done and Fail answer twice the same,
// and go only where they are declared to.
func FuzzEnding(f *testing.F) {
	s := payStep(f, paying(charged, func(c *Call, a *account, r charge) error {
		switch {
		case len(r.Parts) > 2:
			return Refuse("%d parts", len(r.Parts))
		case len(r.Parts) > 0:
			c.Goto("partly")
		}
		return booked(c, a, r)
	}))
	f.Add(`{"due":5}`, `{"id":"ch-1"}`)
	f.Add(`{"charges":["a"]}`, `{"parts":[1,2]}`)
	f.Add(`{}`, `{"parts":[1,2,3]}`)
	f.Add(``, ``)
	f.Add(`{"due":"x"}`, `null`)
	f.Fuzz(func(t *testing.T, data, result string) {
		for name, decide := range map[string]func() (Outcome, error){
			"done": func() (Outcome, error) { return s.Done(payingFacts, []byte(data), []byte(result)) },
			"fail": func() (Outcome, error) { return s.Fail(payingFacts, []byte(data), Failure{Attempts: len(result)}) },
		} {
			first, err := decide()
			again, errAgain := decide()
			require.Truef(t, reflect.DeepEqual(first, again) && CodeOf(err) == CodeOf(errAgain),
				"%s: %+v %v, then %+v %v", name, first, err, again, errAgain)
			if code := CodeOf(err); err != nil && code != Internal && code != NotOnThisNode && (name == "fail" || code != GuardRefused) {
				t.Fatalf("%s: %v", name, err)
			}
			require.Falsef(t, err == nil && (name == "fail") != (first.To == "unpaid"), "%s went to %q", name, first.To)
		}
	})
}

func TestNotDoneKeepsTheError(t *testing.T) {
	t.Parallel()
	cause := errors.New("refused")
	err := NotDone(cause)
	assert.True(t, NotDone(nil) == nil && !IsNotDone(nil) && !IsNotDone(cause) && IsNotDone(err) &&
		IsNotDone(fmt.Errorf("dial: %w", err)) && IsNotDone(Final(err)),
		"IsNotDone")
	assert.Truef(t, err.Error() == "refused" && errors.Is(err, cause) && !IsFinal(err), "it became %v", err)
}
