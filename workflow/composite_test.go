package workflow

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type claimData struct{}

func ignore(*Call, *claimData, None) error { return nil }

// claim has two checks side by side, a suspension that returns to them, and a composite state without regions.
func claim() *Definition[claimData] {
	return Define("claim", 1,
		Start("file", "checking", ignore),
		On("documents", From("documents_wanted"), "documents_ok", ignore),
		On("score", From("unscored"), "review", ignore).Or("cleared"),
		On("clear", From("review"), "cleared", ignore),
		On("suspend", From("checking"), "suspended", ignore),
		On("resume", From("suspended"), Last("checking"), ignore),
		On("note", From("checking", "open"), Stay, ignore),
		On("decide", From("checking"), "open", ignore),
		On("phone", From("waiting"), "phoning", ignore),
		On("hang_up", From("open"), "waiting", ignore),
		On("restart", From("open"), "documents_wanted", ignore),
		On("close", From("open"), "closed", ignore),
	).
		Regions("checking",
			Region("documents", "documents_wanted", "documents_ok").Done("documents_ok"),
			Region("fraud", "unscored", "review", "cleared").Done("cleared")).
		Inside("open", "waiting", "phoning").
		Final("closed")
}

func TestCompositeStates(t *testing.T) {
	w, err := claim().Build()
	require.NoError(t, err)
	state := w.Take("", Move{Step: w.Creating("file"), To: "checking"})
	require.Equal(t, State("checking(documents_wanted,unscored)"), state)
	all := func(*Step) bool { return true }
	for _, c := range []struct {
		transition string
		to         State // "": the step's first
		want       State
	}{
		{"score", "", "checking(documents_wanted,review)"},
		{"note", "", "checking(documents_wanted,review)"},
		{"documents", "", "checking(documents_ok,review)"},
		{"suspend", "", "suspended;checking=documents_ok,review"},
		{"resume", "", "checking(documents_ok,review)"},
		{"clear", "", "checking(documents_ok,cleared)"},
		{"decide", "", "open(waiting);checking=documents_ok,cleared"},
		{"phone", "", "open(phoning);checking=documents_ok,cleared"},
		{"hang_up", "", "open(waiting);checking=documents_ok,cleared"},
		{"restart", "", "checking(documents_wanted,unscored)"},
		{"score", "cleared", "checking(documents_wanted,cleared)"},
	} {
		moves := w.Select(state, c.transition, all)
		require.Len(t, moves, 1, "%s in %s", c.transition, state)
		if c.to != "" {
			moves[0].To = c.to
		}
		moved := w.Take(state, moves...)
		assert.Equal(t, c.want, moved, "%s in %s", c.transition, state)
		state = moved
	}
	assert.Equal(t, []State{"checking", "documents_wanted", "cleared"}, state.Active())
	assert.True(t, state.Has("cleared"))
	assert.False(t, state.Has("review"))
	assert.Equal(t, []string{"documents", "suspend", "note", "decide"}, w.Allowed(state))
	assert.Empty(t, w.Select(state, "clear", all))
	assert.False(t, w.IsFinal(state))
	assert.True(t, w.IsFinal("closed;checking=documents_ok,cleared"))
}

func TestCompositeStates_Mistakes(t *testing.T) {
	_, err := claim().
		Regions("checking", Region("documents", "x")).
		Regions("open", Region("", "y"), Region("", "y")).
		Inside("lost").
		Inside("waiting", "open", "closed").
		Build()
	require.Error(t, err)
	for _, want := range []string{
		`state "checking" is declared composite twice`,
		`state "open" is declared composite twice`,
		`region "" of state "lost" has no states`,
		`state "waiting" is inside itself`,
		`state "closed" is final, but it is inside "waiting"`,
	} {
		assert.ErrorContains(t, err, want)
	}
}

func TestCompositeStates_HooksAndActivities(t *testing.T) {
	_, err := Define("claim", 1,
		Start("file", "checking", ignore),
		On("note", From("wanted"), "done", ignore).Hook("sql"),
		On("note", From("unscored"), "scored", ignore),
		Auto("close", From("deciding"), "closed", func(*Call, *claimData) error { return nil }).Hook("sql"),
		Do("score", From("unscored"), "scoring", "scored",
			func(context.Context, *Attempt, claimData, None) (None, error) { return None{}, nil }, ignore).
			OrElse("scored", func(*Call, *claimData, Failure) error { return nil }),
		On("back", From("checking"), Last("checking"), ignore),
	).
		Regions("checking", Region("papers", "wanted", "done").Done("done"), Region("fraud", "unscored", "scoring", "scored").Done("scored")).
		Joined("checking", N(3), "deciding", func(*Call, *claimData) error { return nil }).
		Final("closed").Build()
	for _, want := range []string{
		`transition "note" has an activity or a hook`,
		`transition "close" is automatic, and a hook runs only with the transition of a command`,
		`activity "score" is under way in state "scoring", which is inside "checking"`,
		`transition "back" returns to the last states inside "checking" from "checking", where they are active`,
		`state "checking" cannot be joined: it has 2 regions that can be done, and the join needs 3`,
	} {
		assert.ErrorContains(t, err, want)
	}
}
