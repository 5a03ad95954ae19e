package workflow

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// bureau is a version of a small workflow: if the version says so the author may not close, and a failed letter undoes the booking.
func bureau(version int, notBy, last, undoes bool, plans ...Plan[claimV1]) *Definition[claimV1] {
	work := func(context.Context, *Attempt, claimV1, None) (int, error) { return 1, nil }
	end := On("close", From("open"), "closed", noAction[claimV1, None])
	if notBy {
		end.NotBy("write")
	}
	if last {
		end.NotByLast("write")
	}
	letter := Do("letter", From("open"), "posting", "open", work, noAction[claimV1, int]).OrElse("open", noAction[claimV1, Failure])
	if undoes {
		letter.Undoes("book")
	}
	return Define("desk", version,
		Start("begin", "open", noAction[claimV1, None]),
		On("write", From("open"), Stay, noAction[claimV1, None]),
		Do("book", From("open"), "booking", "open", work, noAction[claimV1, int]).OrElse("open", noAction[claimV1, Failure]).
			Undo(func(context.Context, *Attempt, claimV1, None, *int) error { return nil }),
		letter, end).Final("closed").Migrate(plans...)
}

// An author under a version that does not keep actors could close under one that excludes authors: the plan must declare this as intended.
func TestAPlanSaysWhatOfThePastIsForgotten(t *testing.T) {
	t.Parallel()
	plan := func() *FromVersionPlan[claimV1, claimV1] { return FromVersion[claimV1, claimV1](1, nil) }
	for name, test := range map[string]struct {
		from *Definition[claimV1]
		to   *Definition[claimV1]
		want []string
	}{
		"nothing is asked": {bureau(1, true, false, true), bureau(2, false, false, false, plan()), nil},
		"what is kept":     {bureau(1, false, true, true), bureau(2, true, true, true, plan()), nil},
		"who did it":       {bureau(1, false, false, true), bureau(2, true, false, true, plan()), []string{`leaves open who did "write"`}},
		"who did it last": {bureau(1, true, false, true), bureau(2, false, true, true, plan()),
			[]string{`leaves open who did "write"`}},
		"what is undone": {bureau(1, false, false, false), bureau(2, false, false, true, plan()),
			[]string{`leaves effects of "book" behind`}},
		"all of it, as is meant": {bureau(1, false, false, false), bureau(2, true, true, true, plan().Forget("write", "book")), nil},
		"what nobody asks for": {bureau(1, true, false, true), bureau(2, true, false, true, plan().Forget("write")),
			[]string{`forgets "write"`}},
	} {
		_, got := migrationOf(t, test.from, test.to)
		assert.Truef(t, len(got) == len(test.want) && slices.EqualFunc(got, test.want, strings.Contains), "%s: %q", name, got)
	}
}

// drafts is a version in which who did one thing may not do another one, under names of its own.
func drafts(version int, wrote string, last bool, plans ...Plan[claimV1]) *Definition[claimV1] {
	end := On("close", From("open"), "closed", noAction[claimV1, None])
	if last {
		end.NotByLast(wrote)
	} else if wrote != "" {
		end.NotBy(wrote)
	}
	parts := []Part[claimV1]{Start("begin", "open", noAction[claimV1, None]), On("other", From("open"), Stay, noAction[claimV1, None]), end}
	if wrote != "" && wrote != "other" {
		parts = append(parts, On(wrote, From("open"), Stay, noAction[claimV1, None]))
	}
	return Define("desk", version, parts...).Final("closed").Migrate(plans...)
}

// An author under the old version's name of a transition could close under the new version: the plan must map the name.
func TestPlan_Actors(t *testing.T) {
	t.Parallel()
	plan := func() *FromVersionPlan[claimV1, claimV1] { return FromVersion[claimV1, claimV1](1, nil) }
	for name, test := range map[string]struct {
		from, to *Definition[claimV1]
		want     []string
	}{
		"another name":      {drafts(1, "draft", false), drafts(2, "write", false, plan()), []string{`leaves open who did "draft"`}},
		"it is mapped":      {drafts(1, "draft", false), drafts(2, "write", false, plan().Transition("draft", "write")), nil},
		"it is forgotten":   {drafts(1, "draft", false), drafts(2, "write", false, plan().Forget("draft")), nil},
		"nobody is asked":   {drafts(1, "draft", false), drafts(2, "", false, plan()), nil},
		"one of that name":  {drafts(1, "draft", false), drafts(2, "other", false, plan().Transition("draft", "other").Forget("other")), nil},
		"the last is known": {drafts(1, "draft", true), drafts(2, "write", true, plan().Transition("draft", "write")), nil},
		"the last is not": {drafts(1, "draft", false), drafts(2, "write", true, plan().Transition("draft", "write")),
			[]string{`whose last actor is not recorded`}},
		"of two the last is not": {drafts(1, "draft", true), drafts(2, "other", true, plan().Transition("draft", "other").Forget("other")),
			[]string{`whose last actor`}},
		"it was not kept": {drafts(1, "", false), drafts(2, "write", false, plan().Transition("other", "write")), []string{`does not keep`}},
		"it is there too": {drafts(1, "other", false), drafts(2, "write", false, plan().Transition("other", "write")), []string{`has too`}},
		"not asked for":   {drafts(1, "draft", false), drafts(2, "write", false, plan().Transition("draft", "other")), []string{`does not ask`}},
		"twice": {drafts(1, "draft", false), drafts(2, "write", false, plan().Transition("draft", "other").Transition("draft", "write")),
			[]string{`maps transition "draft" twice`}},
	} {
		_, got := migrationOf(t, test.from, test.to)
		assert.Truef(t, len(got) == len(test.want) && slices.EqualFunc(got, test.want, strings.Contains), "%s: %q", name, got)
	}
}

// An activity is not carried to where nothing ends, either.
func TestAPlanDoesNotCarryToWhereNothingEnds(t *testing.T) {
	t.Parallel()
	lost := Define("claim", 2,
		Start("file", "open", noAction[claimV1, None]), On("hold", From("open"), "held", noAction[claimV1, None]),
		On("release", From("held"), "open", noAction[claimV1, None]), On("nag", From("open"), Stay, noAction[claimV1, None]),
		On("end", From("open"), "paid", noAction[claimV1, None]), On("turn", From("limbo"), Stay, noAction[claimV1, None]),
		claimPay[claimV1](From("open", "limbo"), "limbo", "limbo", true)).
		Final("paid").Migrate(FromVersion[claimV1, claimV1](1, nil).Carry("pay").DropTimer("nag").DropTimer("release"))
	_, got := migrationOf(t, claims1(), lost)
	if len(got) != 1 || !strings.Contains(got[0], `carries activity "pay" to state "paying", from which no final state can be reached`) {
		t.Errorf("%q", got)
	}
}
