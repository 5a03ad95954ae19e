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

// The workflow of these tests: a claim. Version 2 splits "open" and has other timers.

type claimV1 struct {
	Text string `json:"text"`
	Sum  int    `json:"sum"`
}

type claimV2 struct {
	Text  string `json:"text"`
	Cents int    `json:"cents"`
}

func noAction[D, P any](*Call, *D, P) error { return nil }

func claimPay[D any](from []State, to, failed State, undo bool) *Activity[D, None, int] {
	a := Do("pay", from, "paying", to, func(context.Context, *Attempt, D, None) (int, error) { return 1, nil }, noAction[D, int]).
		OrElse(failed, noAction[D, Failure])
	if undo {
		a.Undo(func(context.Context, *Attempt, D, None, *int) error { return nil })
	}
	return a
}

func claims1() *Definition[claimV1] {
	return Define("claim", 1,
		Start("file", "open", noAction[claimV1, None]),
		On("hold", From("open"), "held", noAction[claimV1, None]),
		On("release", From("held"), "open", noAction[claimV1, None]),
		On("nag", From("open"), Stay, noAction[claimV1, None]),
		claimPay[claimV1](From("open"), "paid", "open", true)).
		Final("paid").
		After("nag", From("open"), time.Hour, "nag").
		After("release", From("held"), 24*time.Hour, "release")
}

func claims2(plans ...Plan[claimV2]) *Definition[claimV2] {
	return Define("claim", 2,
		Start("file", "checking", noAction[claimV2, None]),
		On("approve", From("checking"), "approved", noAction[claimV2, None]),
		On("hold", From("checking"), "held", noAction[claimV2, None]),
		On("release", From("held"), "checking", noAction[claimV2, None]),
		On("lose", From("checking"), "limbo", noAction[claimV2, None]),
		On("turn", From("limbo"), Stay, noAction[claimV2, None]),
		claimPay[claimV2](From("approved"), "paid", "approved", true)).
		Final("paid").
		After("release", From("held"), 48*time.Hour, "release").
		Migrate(plans...)
}

func inCents(old claimV1) (claimV2, error) {
	if old.Sum < 0 {
		return claimV2{}, errors.New("the sum is negative")
	}
	return claimV2{Text: old.Text, Cents: 100 * old.Sum}, nil
}

func migrationOf(t *testing.T, from, to Source) (*Migration, []string) {
	t.Helper()
	var built [2]*Workflow
	for i, s := range []Source{from, to} {
		w, err := s.Build()
		require.NoError(t, err)
		built[i] = w
	}
	m, err := MigrationOf(built[0], built[1])
	if mistakes, ok := errors.AsType[*Mistakes](err); ok {
		return m, mistakes.List
	}
	require.NoError(t, err)
	return m, nil
}

// What is not mapped is listed, all of it.
func TestPlan_Incomplete(t *testing.T) {
	const about = "the plan from version 1 to version 2 "
	for name, test := range map[string]struct {
		plan *FromVersionPlan[claimV1, claimV2]
		want []string
	}{
		"nothing said": {FromVersion[claimV1, claimV2](1, nil), []string{
			`leaves the data as it is, and "/sum" (int64) has no place in it`,
			`does not say where state "open" leads: version 2 has no such state`,
			`does not say what becomes of timer "release", which is another one in version 2: say KeepTimer, RestartTimer or SetTimer`}},
		"stranded": {FromVersion(1, inCents).State("open", "limbo").KeepTimer("release").DropTimer("nag"), []string{
			`takes state "open" to "limbo", from which no final state can be reached`}},
		"a lost timer": {FromVersion(1, inCents).State("open", "checking").RestartTimer("release"), []string{
			`does not say what becomes of timer "nag" of state "open", which does not run in "checking": say DropTimer`}},
		"states that are not there": {FromVersion(1, inCents).State("open", "gone").State("lost", "held").State("paid", "held").State("paying",
			"held").
			KeepTimer("release"), []string{
			`maps state "lost", which version 1 does not have`,
			`maps state "paid", where instances of version 1 end: they stay`,
			`maps state "paying", where an activity is under way: say Carry for "pay"`,
			`takes state "open" to "gone", which version 2 does not have`}},
		"into an activity": {FromVersion(1, inCents).State("open", "paying").KeepTimer("release"), []string{
			`takes state "open" to "paying", where an instance is only while "pay" is under way`}},
		"twice, and nothing": {FromVersion(1, inCents).State("open", "checking").State("open", "held").KeepTimer("release").DropTimer("nag").
			Carry("pay", "pay", "fly").KeepTimer("fun").SetTimer("release", nil), []string{
			`maps state "open" twice`, `says twice what becomes of timer "release"`, `sets timer "release" by no function`,
			`carries activity "pay" twice`, `carries activity "fly", which both versions must have, and once`,
			`says what becomes of timer "fun", which does not run in version 1`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := migrationOf(t, claims1(), claims2(test.plan))
			for i, text := range got {
				got[i] = strings.TrimPrefix(text, about)
			}
			for _, text := range test.want {
				assert.Contains(t, got, text, "missing")
			}
			assert.Falsef(t, len(got) != len(test.want) && name != "twice, and nothing", "got %q", got)
		})
	}
}

func TestPlan_Data(t *testing.T) {
	_, got := migrationOf(t, claims1(), claims2(FromVersion[claimV2, claimV2](1, nil).State("open",
		"checking").DropTimer("nag").KeepTimer("release")))
	assert.Truef(t, len(got) == 1 && strings.Contains(got[0], "is for data workflow.claimV2; version 1 has workflow.claimV1"),
		"%q", got)
	without := Define("claim", 2, Start("file", "open", noAction[claimV1, None]), On("end", From("open"), "paid", noAction[claimV1, None])).
		Final("paid").Migrate(FromVersion[claimV1, claimV1](1, nil).State("held", "open").DropTimer("nag").DropTimer("release"))
	_, got = migrationOf(t, claims1(), without)
	assert.Truef(t, len(got) == 1 && strings.Contains(got[0], `leaves effects of "pay" behind`), "%q", got)
	_, err := claims2(FromVersion(2, func(d claimV2) (claimV2, error) { return d, nil })).Build()
	assert.ErrorContains(t, err, "which is not another one")
	_, err = claims2(FromVersion(1, inCents), FromVersion(1, inCents), nil).Build()
	if err == nil || !strings.Contains(err.Error(), "two plans") || !strings.Contains(err.Error(), "plan 3 of the migrations is nil") {
		t.Error(err)
	}
}

func TestAPlanMapsStatesDataAndTimers(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	m, mistakes := migrationOf(t, claims1(), claims2(FromVersion(1, inCents).State("open", "checking").DropTimer("nag").
		SetTimer("release", func(now time.Time, d claimV2) time.Time { return now.Add(time.Duration(d.Cents) * time.Minute) })))
	require.Nil(t, mistakes)
	for old, want := range map[State]State{"open": "checking", "held": "held", "paying": ""} {
		got, known := m.Into(old)
		assert.Truef(t, got == want && known, "%s: %q, %t", old, got, known)
	}
	_, known := m.Into("paid")
	assert.True(t, !known && !m.Carries("pay"), "what has ended, or has an activity under way, is taken")
	data, err := m.Data([]byte(`{"text":"a","sum":3}`))
	assert.Truef(t, err == nil && string(data) == `{"text":"a","cents":300}`, "%s, %v", data, err)
	for _, bad := range []string{`{"text":"a","sum":-1}`, `{"text":"a","sum":1,"more":true}`} {
		if _, err := m.Data([]byte(bad)); err == nil || CodeOf(err) == Internal {
			t.Errorf("%s: %v", bad, err)
		}
	}
	list, err := m.Timers("held", []byte(`{"sum":3}`), data, now)
	assert.Truef(t, err == nil && len(list) == 1 && list[0].Disarm && list[0].Due.Equal(now.Add(300*time.Minute)), "%+v, %v", list, err)
	list, err = m.Timers("open", nil, data, now)
	assert.Truef(t, err == nil && len(list) == 1 && list[0].Name == "nag" && list[0].Disarm && list[0].Arm == nil, "%+v, %v", list, err)
}

func TestAPlanCarriesAnActivityToWhereItIsUnderWay(t *testing.T) {
	m, mistakes := migrationOf(t, claims1(), claims2(FromVersion(1, inCents).State("open",
		"checking").DropTimer("nag").KeepTimer("release").Carry("pay")))
	require.Nil(t, mistakes)
	into, known := m.Into("paying")
	assert.Truef(t, into == "paying" && known && m.Carries("pay"), "%q, %t", into, known)
	list, err := m.Timers("held", nil, nil, time.Now())
	assert.Truef(t, err == nil && len(list) == 0, "a kept timer: %+v, %v", list, err)
}

// The states at the end of an activity must be the same in both versions, by name.
func TestAPlanDoesNotCarryWhatEndsOtherwise(t *testing.T) {
	type paid struct {
		Cents int `json:"cents"`
	}
	done := func(context.Context, *Attempt, claimV2, None) (int, error) { return 1, nil }
	pay := func(from ...State) *Activity[claimV2, None, int] {
		return Do("pay", From(from...), "paying", "paid", done, noAction[claimV2, int]).Undo(func(context.Context, *Attempt, claimV2, None,
			*int) error {
			return nil
		})
	}
	failed := noAction[claimV2, Failure]
	other := Do("pay", From("checking"), "paying", "paid", func(context.Context, *Attempt, claimV2, None) (paid, error) { return paid{}, nil },
		noAction[claimV2, paid]).OrElse("checking", failed).Undo(func(context.Context, *Attempt, claimV2, None, *paid) error { return nil })
	for name, test := range map[string]struct {
		with []Part[claimV2]
		want string
	}{
		"back to where it came from": {[]Part[claimV2]{pay("checking", "held").OrElse(Stay, failed)},
			`carries activity "pay", which in version 2 returns to its former state: that is a state of version 1`},
		"two of one name": {[]Part[claimV2]{pay("checking").OrElse("checking", failed),
			Do("pay", From("held"), "repaying", "paid", done, noAction[claimV2, int]).OrElse("held", failed)},
			`carries activity "pay", which both versions must have, and once`},
		"another result": {[]Part[claimV2]{other}, `carries activity "pay", whose payload or result is another one in version 2`},
		"one state back": {[]Part[claimV2]{pay("checking").OrElse("checking", failed)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			plan := FromVersion(1, inCents).State("open", "checking").DropTimer("nag").KeepTimer("release").Carry("pay")
			_, got := migrationOf(t, claims1(), Define("claim", 2, append(test.with,
				Start("file", "checking", noAction[claimV2, None]), On("hold", From("checking"), "held", noAction[claimV2, None]),
				On("release", From("held"), "checking", noAction[claimV2, None]))...).
				Final("paid").After("release", From("held"), 24*time.Hour, "release").Migrate(plan))
			found := slices.ContainsFunc(got, func(text string) bool { return strings.HasSuffix(text, test.want) })
			assert.Truef(t, found == (test.want != "") && (test.want != "" || len(got) == 0), "got %q, want %q", got, test.want)
		})
	}
}

func TestPlan_Timers(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	type box struct {
		Until time.Time `json:"until"`
	}
	boxes := func(version int) *Definition[box] {
		return Define("box", version, Start("fill", "full", noAction[box, None]), On("spoil", From("full"), "spoilt", noAction[box, None]),
			On("turn", From("full"), Stay, noAction[box, None])).Final("spoilt").
			At("spoils", From("full"), func(b box) time.Time { return b.Until }, "spoil").
			After("turns", From("full"), time.Hour, "turn")
	}
	m, mistakes := migrationOf(t, boxes(1), boxes(2).Migrate(FromVersion(1, func(b box) (box, error) {
		b.Until = b.Until.Add(24 * time.Hour)
		return b, nil
	}).RestartTimer("turns")))
	require.Nil(t, mistakes)
	const before = `{"until":"2026-05-03T00:00:00Z"}`
	after, err := m.Data([]byte(before))
	require.NoError(t, err)
	due := map[string]time.Time{}
	list, err := m.Timers("full", []byte(before), after, now)
	for _, change := range list {
		assert.Truef(t, change.Disarm && change.Arm != nil, "%+v", change)
		due[change.Name] = change.Due
	}
	assert.Truef(t, err == nil && len(list) == 2 && due["turns"].Equal(now.Add(time.Hour)) &&
		due["spoils"].Equal(time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)),
		"%+v, %v", list, err)
	if list, err := m.Timers("full", []byte(before), []byte(before), now); err != nil || len(list) != 1 {
		t.Errorf("the time in the data is the same, and %+v, %v", list, err)
	}
}

func TestWhereAnOperatorMayPutAnInstance(t *testing.T) {
	w, err := claims2().Build()
	require.NoError(t, err)
	for state, want := range map[State]string{"checking": "", "paid": "", "gone": "no such state", "paying": "under way",
		"limbo": "no final state"} {
		got := w.StateProblem(state)
		assert.Truef(t, (got == "") == (want == "") && strings.Contains(got, want), "%s: %q, want %q", state, got, want)
	}
}
