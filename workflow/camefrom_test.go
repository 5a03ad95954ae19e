package workflow

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asking is an activity from two states.
func asking(to State) *Activity[calm, None, int] {
	return Do("ask", From("open", "waiting"), "asking", to,
		func(context.Context, *Attempt, calm, None) (int, error) { return 0, nil },
		func(c *Call, _ *calm, n int) error {
			if n > 0 {
				c.Goto(Stay)
			}
			return nil
		})
}

// desk is a definition with that activity and a way between its states.
func desk(a *Activity[calm, None, int]) *Definition[calm] {
	return Define("desk", 1, Start("begin", "open", quiet[None]), a, On("wait", From("open"), "waiting", quiet[None]),
		On("close", From("open", "waiting"), "closed", quiet[None])).Final("closed")
}

func TestAnActivityGoesBackToWhereItCameFrom(t *testing.T) {
	t.Parallel()
	from := func(s State) Facts { return Facts{State: "asking", From: s} }
	for name, c := range map[string]struct {
		activity *Activity[calm, None, int]
		facts    Facts
		result   string // "": it has failed
		want     State
		keeps    bool
	}{
		"failed":                             {asking("closed").OrElse(Stay, failing), from("waiting"), "", "waiting", true},
		"done":                               {asking(Stay).OrElse("open", failing), from("waiting"), `0`, "waiting", true},
		"done, as the action chooses":        {asking("open").Or(Stay).OrElse("open", failing), from("waiting"), `1`, "waiting", true},
		"done, and it might have gone back":  {asking("closed").Or(Stay).OrElse("open", failing), from("waiting"), `0`, "closed", true},
		"failed, to a state by where it was": {asking("closed").OrElseFrom(swap, failing), from("waiting"), "", "open", true},
		"failed, by where it was, back": {asking("closed").OrElseFrom(func(State) State { return Stay }, failing), from("waiting"), "",
			"waiting", true},
		"failed, to one state":            {asking("closed").OrElseFrom(swap, failing).OrElse("open", failing), from(""), "", "open", false},
		"there is one state to come from": {sound("ask", "asking", "closed").OrElse(Stay, failing), from(""), "", "open", false},
		"done, from one state":            {sound("ask", "asking", "closed").Or(Stay), from(""), `0`, "closed", false},
	} {
		w, err := desk(c.activity).Build()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s := w.Leaving("ask", "open")
		var out Outcome
		if c.result == "" {
			out, err = s.Fail(c.facts, nil, Failure{})
		} else {
			out, err = s.Done(c.facts, nil, []byte(c.result))
		}
		assert.Truef(t, err == nil && out.To == c.want && s.Work.KeepsFrom == c.keeps,
			"%s: to %q, kept %t, %v", name, out.To, s.Work.KeepsFrom, err)
	}
	w, err := desk(asking(Stay).OrElse(Stay, failing)).Build()
	require.NoError(t, err)
	s := w.Leaving("ask", "open")
	_, err = s.Done(from(""), nil, []byte(`0`))
	assert.Equalf(t, Internal, CodeOf(err), "nobody knows where it came from: %v", err)
	_, err = s.Fail(from(""), nil, Failure{})
	assert.Equalf(t, Internal, CodeOf(err), "nobody knows where it came from, and it failed: %v", err)
}

func swap(from State) State {
	return map[State]State{"open": "waiting", "waiting": "open"}[from]
}

func TestMistakesOfWhereAnActivityGoesBack(t *testing.T) {
	t.Parallel()
	to := func(State) State { return "" }
	checked(t, []string{`activity "send" does not declare the state after a final failure for instances from "open"`}, nil,
		task("send", "sending", "closed").OrElseFrom(to, failing))
	checked(t, []string{
		`activity "send" has an OrElse without a function`,
		`activity "send" does not declare the state after a final failure for instances from "open"`,
	}, nil, task("send", "sending", "closed").OrElseFrom(nil, nil))
	checked(t, []string{`state "lost" is a dead end: nothing leaves it and it is not declared final`}, nil,
		task("send", "sending", "closed").OrElseFrom(func(State) State { return "lost" }, failing))
	checked(t, []string{`transition "send" leads to state "calling", where an instance is only while "call" is under way`}, nil,
		sound("call", "calling", "closed"),
		Do("send", From("open", "calling"), "sending", "closed",
			func(context.Context, *Attempt, calm, None) (int, error) { return 0, nil },
			func(*Call, *calm, int) error { return nil }).OrElse(Stay, failing))
}

func TestWhereAnActivityGoesBackIsDescribed(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range []struct {
		activity     *Activity[calm, None, int]
		failed       State
		from         map[State]State
		done, gaveUp []State
	}{
		{asking("closed").OrElse("open", failing), "open", nil, From("closed"), From("open")},
		{asking("closed").OrElse(Stay, failing), Stay, nil, From("closed"), From("open", "waiting")},
		{asking("closed").OrElseFrom(swap, failing), "", map[State]State{"open": "waiting", "waiting": "open"}, From("closed"),
			From("waiting", "open")},
		{asking(Stay).Or("closed").OrElse("open", failing), "open", nil, From("open", "waiting", "closed"), From("open")},
	} {
		w, err := desk(c.activity).Build()
		require.NoError(t, err)
		d := w.Describe().Transitions[1].Activity
		done, gaveUp := w.Leaving("ask", "open").Ends()
		if d.Failed != c.failed || !maps.Equal(d.FailedFrom, c.from) || !slices.Equal(done, c.done) || !slices.Equal(gaveUp, c.gaveUp) {
			t.Errorf("%+v, %v, %v", d, done, gaveUp)
		}
		assert.Falsef(t, seen[w.Hash], "another definition has the hash of %+v", d)
		seen[w.Hash] = true
		states := From("open", "asking", "waiting", "closed")
		assert.Len(t, w.States, len(states), "the states")
	}
	again, _ := desk(asking("closed").OrElseFrom(swap, failing)).Build()
	assert.Equal(t, true, seen[again.Hash], "the hash of one definition is not always the same")
}
