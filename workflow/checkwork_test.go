package workflow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type calm struct {
	Until time.Time `json:"until"`
}

func quiet[P any](*Call, *calm, P) error { return nil }

func failing(*Call, *calm, Failure) error { return nil }

// task declares an activity from "open" that is correct except for the additions.
func task(name string, via, to State) *Activity[calm, None, int] {
	return Do(name, From("open"), via, to,
		func(context.Context, *Attempt, calm, None) (int, error) { return 0, nil },
		func(*Call, *calm, int) error { return nil })
}

func sound(name string, via, to State) *Activity[calm, None, int] {
	return task(name, via, to).OrElse("open", failing)
}

// checked builds a definition of the parts, with a start into "open" and a way
// to the final "closed", and wants exactly these mistakes.
func checked(t *testing.T, want []string, add func(*Definition[calm]), parts ...Part[calm]) {
	t.Helper()
	d := Define("w", 1, append([]Part[calm]{
		Start("begin", "open", quiet[None]), On("close", From("open"), "closed", quiet[None]),
	}, parts...)...).Final("closed")
	if add != nil {
		add(d)
	}
	_, err := d.Build()
	var got []string
	if m, ok := errors.AsType[*Mistakes](err); ok {
		got = m.List
	} else if err != nil {
		t.Error(err)
	}
	assert.Truef(t, slices.Equal(got, want), "got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
}

func TestSoundActivities(t *testing.T) {
	checked(t, nil, nil, sound("charge", "waiting", "closed"), sound("send", "waiting", "closed")) // they share a state in between
	checked(t, nil, nil, sound("send", "sending", "closed").Or(Stay).OrElse(Stay, failing))        // back
	checked(t, nil, nil,
		sound("charge", "charging", "charged").OrElse("failed", failing),
		// Commands may leave a state in between, or stay there.
		On("stop", From("charging"), "closed", quiet[None]),
		On("note", From("charging", "charged"), Stay, quiet[None]),
		On("look", From("charging"), "charging", quiet[None]),
		On("ship", From("charged"), "closed", quiet[None]),
		On("again", From("failed"), "open", quiet[None]),
		// One name may be done at once in one state and take time in another one.
		Do("stop", From("charged"), "refunding", "closed",
			func(context.Context, *Attempt, calm, None) (int, error) { return 0, nil },
			func(*Call, *calm, int) error { return nil }).OrElse("charged", failing))
}

func TestMistakesOfActivities(t *testing.T) {
	for name, c := range map[string]struct {
		part Part[calm]
		want []string
	}{
		"nothing": {Do[calm, None, int]("send", From("open"), "sending", "closed", nil, nil), []string{
			`activity "send" has no work`,
			`activity "send" has no function for the result of its work`,
			`activity "send" does not declare the state after a final failure: declare OrElse`,
		}},
		"no functions": {sound("send", "sending", "closed").Accept(nil).OrElse("open", nil).Undo(nil).Check(nil), []string{
			`transition "send" has no action`,
			`activity "send" has an OrElse without a function`,
			`activity "send" has an Undo without a function`,
			`activity "send" has a Check without a function`,
		}},
		"result": {Do("send", From("open"), "sending", "closed",
			func(context.Context, *Attempt, calm, None) (chan int, error) { return nil, nil },
			func(*Call, *calm, chan int) error { return nil }).OrElse("open", failing), []string{
			`activity "send" has a result chan int that cannot be stored as JSON: chan int: it has no JSON form`,
		}},
		"names": {sound("send.off", "Sending", "closed").OrElse("not sent", failing), []string{
			`the state's name "Sending" is not 1 to 64 of a-z, 0-9, _ and -`,
			`the state's name "not sent" is not 1 to 64 of a-z, 0-9, _ and -`,
			`the transition's name "send.off" is not 1 to 64 of a-z, 0-9, _ and -`,
			`state "not sent" is a dead end: nothing leaves it and it is not declared final`,
		}},
		"final in between": {sound("send", "closed", "open"), []string{
			`transition "close" leads to state "closed", where an instance is only while "send" is under way`,
			`activity "send" is under way in state "closed", which is final`,
		}},
		"from in between": {sound("send", "open", "closed").OrElse("closed", failing), []string{
			`transition "begin" leads to state "open", where an instance is only while "send" is under way`,
			`activity "send" leaves state "open", where it is under way itself`,
		}},
		"stays in between": {sound("send", Stay, "closed"), []string{
			`activity "send" is under way in "(stay)", which is a target, not a state`,
		}},
		"done in between": {sound("send", "sending", "closed").Or("sending"), []string{
			`transition "send" leads to state "sending", where an instance is only while "send" is under way`,
		}},
		"failure in between": {sound("send", "sending", "closed").OrElse("sending", failing), []string{
			`transition "send" leads to state "sending", where an instance is only while "send" is under way`,
		}},
		"failure is a dead end": {sound("send", "sending", "closed").OrElse("lost", failing), []string{
			`state "lost" is a dead end: nothing leaves it and it is not declared final`,
		}},
		"negative": {sound("send", "sending", "closed").Timeout(-1).Concurrency(-2).Retry(Retry{Attempts: -3, First: -4}), []string{
			`activity "send" has a negative timeout: -1ns`,
			`activity "send" has a negative concurrency: -2`,
			`activity "send" has a negative number of attempts: -3`,
			`activity "send" waits a negative time between attempts: -4ns`,
		}},
		"negative longest wait": {sound("send", "sending", "closed").Retry(Retry{Max: -1}), []string{
			`activity "send" waits a negative time between attempts: -1ns`,
		}},
		"first wait": {sound("send", "sending", "closed").Retry(Retry{First: 3, Max: 2}), []string{
			`activity "send" waits up to 3ns after its first failure, and never longer than 2ns`,
		}},
		"undoes": {sound("send", "sending", "closed").Undoes("close", "send", "fly", "fly"), []string{
			`activity "send" undoes "close", which declares no Undo`,
			`activity "send" undoes "send", which declares no Undo`,
			`activity "send" undoes "fly", which does not exist`,
			`activity "send" undoes "fly" twice`,
		}},
		"settles": {sound("send", "sending", "closed").Settles("close", "fly", "fly"), []string{
			`activity "send" settles "close", which no activity undoes`,
			`activity "send" settles "fly", which does not exist`,
			`activity "send" settles "fly" twice`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			checked(t, c.want, nil, c.part)
		})
	}
}

// One name may stand for several activities, in states of their own; how many run at once is said once.
func TestActivitiesOfOneName(t *testing.T) {
	another := func(from State) *Activity[calm, None, string] {
		return Do("send", From(from), "sending", "closed",
			func(context.Context, *Attempt, calm, None) (string, error) { return "", nil },
			func(*Call, *calm, string) error { return nil }).OrElse("open", failing)
	}
	wait := On("wait", From("open"), "waiting", quiet[None])
	checked(t, nil, nil, sound("send", "sending", "closed"), wait, another("waiting"))
	checked(t, []string{`transition "send" is ambiguous: two declarations leave state "open"`}, nil,
		sound("send", "sending", "closed"), another("open"))
	checked(t, []string{`activity "send" is declared with concurrency 2 and with 0; one name has one limit`}, nil,
		sound("send", "sending", "closed").Concurrency(2), wait, another("waiting"))
	w, err := Define("w", 1, Start("send", "open", quiet[None]), sound("send", "sending", "closed"), wait, another("waiting"),
		sound("call", "calling", "closed")).Final("closed").Build()
	require.NoError(t, err)
	one, other := w.Leaving("send", "open"), w.Leaving("send", "waiting")
	assert.True(t, w.Activity("send", "open") == one && w.Activity("send", "waiting") == other && w.Activity("send", "") == nil &&
		one.Work.KeepsFrom && other.Work.KeepsFrom,
		"one of the two is taken for the other")
	call := w.Leaving("call", "open")
	assert.True(t, w.Activity("call", "") == call && !call.Work.KeepsFrom, "the only one of a name is not known by it")
	if s := w.Creating("send"); s == nil || !s.Start || len(w.Moving("send")) != 2 || w.Creating("call") != nil || len(w.Named("send")) != 3 {
		t.Error("what creates and what moves is mixed up")
	}
}

func TestUndoesWhatDeclaresAnUndo(t *testing.T) {
	undo := func(context.Context, *Attempt, calm, None, *int) error { return nil }
	checked(t, nil, nil, sound("reserve", "reserving", "closed").Undo(undo), sound("send", "sending", "closed").Undoes("reserve").Settles("reserve"))
}

// The states after an activity are reachable only if its from-state is.
func TestActivityThatNothingReaches(t *testing.T) {
	checked(t, []string{
		`state "limbo" cannot be reached from a start`,
		`state "sending" cannot be reached from a start`,
		`state "sent" cannot be reached from a start`,
		`state "unsent" cannot be reached from a start`,
	}, nil,
		Do("send", From("limbo"), "sending", "sent",
			func(context.Context, *Attempt, calm, None) (int, error) { return 0, nil },
			func(*Call, *calm, int) error { return nil }).OrElse("unsent", failing),
		On("end", From("sent", "unsent"), "closed", quiet[None]))
}

// What is under way cannot be asked for again.
func TestAllowedInBetween(t *testing.T) {
	w, err := Define("w", 1, Start("begin", "open", quiet[None]), sound("send", "sending", "closed"),
		On("stop", From("sending"), "closed", quiet[None])).Final("closed").Build()
	require.NoError(t, err)
	got := w.Allowed("sending")
	assert.Truef(t, slices.Equal(got, []string{"stop"}) && w.Leaving("send", "sending") == nil, "allowed are %v", got)
	want := From("open", "sending", "closed")
	assert.Truef(t, slices.Equal(w.States, want), "states %v", w.States)
}

type wanting struct {
	Reason string `json:"reason" validate:"required"`
	By     string `json:"by" validate:"required"`
}

func TestMistakesOfTimers(t *testing.T) {
	at := func(c calm) time.Time { return c.Until }
	parts := []Part[calm]{
		sound("send", "sending", "closed"),
		On("refuse", From("open"), "closed", quiet[wanting]),
		On("stop", From("sending"), "closed", quiet[None]),
	}
	checked(t, nil, func(d *Definition[calm]) {
		d.After("idle", From("open"), time.Hour, "close").After("at-once", From("open"), 0, "send").
			After("slow", From("sending"), time.Hour, "stop").At("until", From("open"), at, "close")
	}, parts...)
	checked(t, []string{
		`the timer's name "Idle" is not 1 to 64 of a-z, 0-9, _ and -`,
		`timer "Idle" fires after a negative time: -1ns`,
		`timer "nowhere" runs in no state`,
		`timer "nowhere" is declared twice`,
		`timer "nowhere" names state "open" twice`,
		`timer "states" runs in state "closed", which is final: nothing happens there`,
		`timer "states" runs in state "lost", which is unknown: no transition mentions it`,
		`timer "states" runs in state "(stay)", which is unknown: no transition mentions it`,
		`timer "states" does "close", which does not leave state "sending"`,
		`timer "does-nothing" does "fly", which does not exist`,
		`timer "starts" does "begin", which creates an instance`,
		`timer "refused" does "refuse" with an empty payload, which it refuses: /reason is required, /by is required`,
		`timer "no-function" has no function for its time`,
	}, func(d *Definition[calm]) {
		d.After("Idle", From("open"), -1, "close").
			After("nowhere", nil, 1, "close").
			After("nowhere", From("open", "open"), 1, "close").
			At("states", From("open", "closed", "lost", Stay, "sending"), at, "close").
			After("does-nothing", From("open"), 1, "fly").
			After("starts", From("open"), 1, "begin").
			After("refused", From("open"), 1, "refuse").
			At("no-function", From("open"), nil, "close")
	}, parts...)
}
