package decide

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestDecideYieldsEveryRefusalOfTheTable(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	approvedByBob := expenseIn(approved, 3, "120")
	approvedByBob.Actors["decide"] = []string{"bob"}
	seen := map[workflow.Code]bool{}
	for _, tt := range []struct {
		name    string
		command transitions.Command
		inst    *transitions.Instance
		want    workflow.Code
		message string
	}{
		{"no such instance", onE1("drop", "", "bob"), nil, workflow.InstanceNotFound, `the business key "E-1"`},
		{"an instance of another workflow", onE1("drop", "", "bob"), &transitions.Instance{Workflow: "order", BusinessKey: "E-1", State: open},
			workflow.InstanceNotFound, ""},
		{"an instance of another business key", onE1("drop", "", "bob"),
			&transitions.Instance{Workflow: "expense", BusinessKey: "E-2", State: open}, workflow.InstanceNotFound, ""},
		{"no role", onE1("decide", `{"verdict":"yes"}`, "bob"), expenseIn(open, 1, "1"), workflow.RoleRequired, `"decide" requires role boss`},
		{"the wrong role", onE1("pay", "", "eve", "clerk"), expenseIn(approved, 2, "1"), workflow.RoleRequired, "cashier or boss"},
		{"a creation without its role", transitions.Command{Transition: "open-house"}, nil, workflow.RoleRequired, "requires role boss"},
		{"who filed decides", onE1("decide", `{"verdict":"yes"}`, "ann", "boss"), expenseIn(open, 1, "1"),
			workflow.SeparationOfDuties, `and "file" must be done by different actors`},
		{"who decided pays", onE1("pay", "", "bob", "cashier"), approvedByBob, workflow.SeparationOfDuties, `and "decide" must`},
		{"every role does not lift the separation", onE1("pay", "", "bob", transitions.AnyRole), approvedByBob, workflow.SeparationOfDuties, ""},
		{"not from this state", onE1("pay", "", "eve", "cashier"), expenseIn(open, 1, "1"), workflow.IllegalTransition,
			`"pay" is not possible in state "open"; allowed are: add, decide, drop`},
		{"not from a final state", onE1("drop", "", "bob", "boss"), expenseIn(paid, 4, "1"), workflow.IllegalTransition,
			"nothing can be done any more"},
		{"not from this state, and no role for it", onE1("pay", "", "eve"), expenseIn(open, 1, "1"), workflow.RoleRequired, ""},
		{"from no state that the actor may", onE1("drop", "", "ann"), expenseIn(paid, 4, "1"), workflow.RoleRequired, ""},
		{"an old version", transitions.Command{Transition: "add", BusinessKey: "E-1", Options: transitions.Options{IfVersion: 3}},
			expenseIn(open, 4, "1"),
			workflow.VersionConflict,
			"expected version 3, but the instance is at version 4"},
		{"a version to come", transitions.Command{Transition: "add", BusinessKey: "E-1", Options: transitions.Options{IfVersion: 5}},
			expenseIn(open, 4, "1"),
			workflow.VersionConflict, ""},
		{"a version of what is not there yet", transitions.Command{Transition: "draft", Options: transitions.Options{IfVersion: 1}}, nil,
			workflow.VersionConflict,
			"does not exist yet"},
		{"a guard", onE1("decide", `{"verdict":"yes"}`, "bob", "boss"), expenseIn(open, 1, "0"), workflow.GuardRefused, "nothing to decide"},
		{"an action", onE1("add", `{"amounts":[1],"do":"refuse"}`, "bob"), expenseIn(open, 1, "1"), workflow.GuardRefused,
			"line 1 is not allowed"},
		{"an action's plain error", onE1("add", `{"do":"fail plainly"}`, "bob"), expenseIn(open, 1, "1"), workflow.GuardRefused,
			"no receipt attached"},
		{"a taken business key", transitions.Command{Transition: "register", Payload: []byte(`{"number":"E-1","total":1}`)},
			expenseIn(paid, 4, "1"),
			workflow.AlreadyExists, `the business key "E-1" belongs to instance ` + transitions.InstanceID("default", "expense", "E-1").String()},
		{"an id that another key has", transitions.Command{Transition: "file", Payload: []byte(`{"number":"E-1","total":1}`)},
			&transitions.Instance{Workflow: "expense", BusinessKey: "E-2"}, workflow.Internal, ""},
		{"a panic", onE1("add", `{"do":"panic"}`, "bob"), expenseIn(open, 1, "1"), workflow.Internal, ""},
		{"a stray target", onE1("add", `{"do":"stray"}`, "bob"), expenseIn(open, 1, "1"), workflow.Internal, ""},
		{"an event twice", onE1("add", `{"do":"emit twice"}`, "bob"), expenseIn(open, 1, "1"), workflow.Internal, ""},
		{"the transition's own event", onE1("add", `{"do":"emit its own"}`, "bob"), expenseIn(open, 1, "1"), workflow.Internal, ""},
		{"data that does not fit", onE1("add", "", "bob"), expenseIn(open, 1, `"much"`), workflow.NotOnThisNode, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := Decide(prepared(t, w, tt.command), w, tt.inst, noon)
			require.NotNilf(t, d.Err, "it was done: %s", d.Body)
			wantCode(t, d.Err, tt.want)
			seen[d.Err.Code] = true
			assert.Contains(t, d.Err.Message, tt.message, "want a message with")
			checkRefusal(t, d, tt.inst)
		})
	}
	for code, d := range refusalsInFlight(t) {
		wantCode(t, d.Err, code)
		assert.Truef(t, d.Stored && d.Status == transitions.FailedFinal && d.Code == code.Info().Status &&
			workflow.CodeOf(transitions.Receipt{Status: d.Code, Body: d.Body}.Err()) == code, "%s: got %+v, %s", code, d, d.Body)
		seen[d.Err.Code] = true
	}
	for _, c := range workflow.Codes {
		assert.Falsef(t, c.Final && !seen[c.Code], "no decision here yields %s, which is final", c.Code)
	}
}

// refusalsInFlight are those that no first attempt of a command can get.
func refusalsInFlight(t testing.TB) map[workflow.Code]Decision {
	t.Helper()
	l := newLife(t)
	rich := newLife(t)
	rich.inst.Links.Effects = make([]transitions.Effect, MaxEffects)
	_, full := rich.decide(rich.command("book", `{}`))
	large := newLife(t)
	large.w.MaxData = len(large.inst.Data)
	_, grown := large.decide(large.command("edit", `{}`))
	f := l.accept("book", `{}`)
	move, err := Operate(transitions.Command{Key: "m", Workflow: l.inst.Workflow, Instance: l.inst.ID},
		transitions.Operation{Action: transitions.Migrate, To: 9})
	require.NoError(t, err)
	mend, err := Operate(transitions.Command{Key: "c", Workflow: l.inst.Workflow, Instance: l.inst.ID},
		transitions.Operation{Action: transitions.Correct, State: l.inst.State, Reason: "wrong"})
	require.NoError(t, err)
	later := l.scheduled(l.command("edit", `{}`))
	ended := *l.inst
	ended.Open = false
	return map[workflow.Code]Decision{
		workflow.MigrationRefused:  Decide(move, l.w, &ended, noon),
		workflow.CorrectionRefused: Decide(mend, l.w, &ended, noon),
		workflow.TooManyEffects:    full,
		workflow.DataTooLarge:      grown,
		workflow.ActivityFailed:    l.end(f, failure(workflow.FailureError, "no seats", false)),
		workflow.CommandCancelled:  l.end(f, failure(workflow.FailureCancelled, "cancelled by ann", false)),
		workflow.CommandAbandoned:  l.end(f, failure(workflow.FailureUntaken, "nobody took it", false)),
		workflow.CredentialEnded:   l.end(later, later.Unallowed("the key was revoked")),
		workflow.NotStuck:          l.operate(transitions.Abandon, recordOf(f, transitions.Processing, "")),
	}
}

// checkRefusal holds a refusal against the error table.
func checkRefusal(t testing.TB, d Decision, inst *transitions.Instance) {
	t.Helper()
	info := d.Err.Code.Info()
	assert.True(t, d.After == nil && d.Events == nil && d.Entry.Version == 0, "something changes all the same")
	assert.Truef(t, d.Stored == info.Final && d.Code == info.Status,
		"stored %v with %d, want %v with %d", d.Stored, d.Code, info.Final, info.Status)
	if !d.Stored {
		assert.Truef(t, d.Body == nil && d.Status == "", "an answer %q %s of what is not stored", d.Status, d.Body)
		return
	}
	assert.Equal(t, transitions.FailedFinal, d.Status, "status")
	again := transitions.Receipt{Status: d.Code, Body: d.Body}.Err()
	assert.Equalf(t, d.Err.Code, workflow.CodeOf(again), "its body says %v", again)
	if inst != nil {
		assert.Equal(t, inst.State, d.Err.State)
	}
}

func TestDecideChangesTheInstanceAndSaysHow(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	inst := expenseIn(open, 3, "100")
	c := onE1("add", `{"amounts":[20,5],"do":"emit"}`, "bob")
	c.IfVersion = 3
	p := prepared(t, w, c)
	d := Decide(p, w, inst, noon)
	require.Nil(t, d.Err)
	wantAfter := clone(inst)
	wantAfter.Version, wantAfter.UpdatedAt = 4, noon
	wantAfter.Data = []byte(`{"filer":"ann","number":"E-1","total":125,"lines":[20,5]}`)
	wantAfter.Actors = map[string][]string{"file": {"ann"}, "add": {"bob"}}
	assert.Equal(t, wantAfter, d.After, "after")
	wantEntry := transitions.Entry{Tenant: "default", Instance: inst.ID, Version: 4, Workflow: "expense", Transition: "add", From: open,
		To:    open,
		Actor: "bob", Payload: []byte(`{"amounts":[20,5],"do":"emit"}`), Data: wantAfter.Data, Scope: "expense:" + inst.ID.String(), Key: "k-1",
		At: noon}
	before, now, rest := StandingOf(inst), StandingOf(wantAfter), Rest(wantAfter)
	wantEntry.Before, wantEntry.After, wantEntry.Rest, wantEntry.Emitted = before.Digest(), now.Digest(), rest[:], EmittedDigest(d.Events)
	assert.Equal(t, wantEntry, d.Entry, "entry")
	event := transitions.Event{Tenant: "default", Type: "expense.add", Workflow: "expense", Instance: inst.ID, Version: 4, Transition: "add",
		BusinessKey: inst.BusinessKey, Attributes: wantAfter.Attributes, From: open, State: open, Actor: "bob",
		Scope: "expense:" + inst.ID.String(), Key: "k-1", Cause: transitions.CausedByCaller, At: noon, Payload: wantAfter.Data}
	grown, audit := event, event
	grown.Ordinal, grown.Type, grown.Payload = 1, "expense.grown", []byte(`{"total":125}`)
	audit.Ordinal, audit.Type, audit.Payload = 2, "expense.audit", []byte(`null`)
	assert.Equal(t, []transitions.Event{event, grown, audit}, d.Events, "events")
	assert.Truef(t, d.Stored && d.Status == transitions.Succeeded && d.Code == 200 && d.Step == w.Leaving("add", open),
		"got stored %v, %s, %d, %v", d.Stored, d.Status, d.Code, d.Step)
}

func TestDecideCreates(t *testing.T) {
	t.Parallel()
	w := built(t, definition(7))
	d := Decide(prepared(t, w, transitions.Command{Transition: "file", Actor: "ann", Payload: []byte(`{"number":"E-1","total":5}`)}), w, nil,
		noon)
	require.Nil(t, d.Err)
	want := &transitions.Instance{Tenant: "default", ID: transitions.InstanceID("default", "expense", "E-1"), Workflow: "expense",
		Definition: 7, BusinessKey: "E-1",
		State: open, Version: 1, Data: []byte(`{"filer":"ann","number":"E-1","total":5}`), Attributes: map[string]string{"filer": "ann"},
		Actors: map[string][]string{"file": {"ann"}}, Open: true, CreatedAt: noon, UpdatedAt: noon}
	assert.Equal(t, want, d.After)
	assert.Truef(t, d.Code == 201 && d.Entry.From == "" && d.Entry.To == open && d.Entry.Version == 1 && d.Entry.Reason == "filed E-1",
		"got %d, %+v", d.Code, d.Entry)
	d = Decide(prepared(t, w, transitions.Command{Transition: "draft"}), w, nil, noon)
	assert.Truef(t, d.After != nil && d.After.ID == madeUp && d.After.BusinessKey == "" && d.After.Actors == nil &&
		len(d.After.Attributes) == 0, "without a business key: got %+v", d.After)
}

func TestTheActionChoosesAmongTheTargets(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	for verdict, want := range map[string]workflow.State{"yes": approved, "no": rejected, "wait": open} {
		d := Decide(prepared(t, w, onE1("decide", `{"verdict":"`+verdict+`"}`, "bob", "boss")), w, expenseIn(open, 1, "1"), noon)
		assert.Truef(t, d.After != nil && d.After.State == want && d.Entry.To == want && d.Events[0].State == want,
			"%s: got %+v, want %s", verdict, d.After, want)
	}
	// Stay is wherever the instance is, and Open follows the state.
	for _, from := range []workflow.State{open, rejected} {
		d := Decide(prepared(t, w, onE1("add", "", "bob")), w, expenseIn(from, 1, "1"), noon)
		assert.Truef(t, d.After != nil && d.After.State == from && d.After.Open, "from %s: got %+v", from, d.After)
	}
	d := Decide(prepared(t, w, onE1("pay", "", "eve", "cashier")), w, expenseIn(approved, 2, "1"), noon)
	assert.Truef(t, d.After != nil && !d.After.Open, "in a final state: got %+v", d.After)
}

func TestForbidden_HidesState(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	// drop is declared twice: for all except the filer, and for the boss.
	d := Decide(prepared(t, w, onE1("drop", "", "bob")), w, expenseIn(paid, 4, "1"), noon)
	wantCode(t, d.Err, workflow.IllegalTransition) // bob may do the first
	d = Decide(prepared(t, w, onE1("drop", "", "ann")), w, expenseIn(paid, 4, "1"), noon)
	wantCode(t, d.Err, workflow.RoleRequired) // ann neither
	assert.Truef(t, !d.Stored && d.Err.State == "" && !strings.Contains(d.Err.Message, "paid"), "got stored %v, %+v", d.Stored, d.Err)
}

// The database could not store it, and its error would say nothing of whose attribute it is.
func TestAnAttributeWithANULIsADefectOfTheWorkflow(t *testing.T) {
	w := built(t, definition(1).Attr("odd", func(expense) string { return "a\x00" }))
	d := Decide(prepared(t, w, onE1("add", `{"amounts":[1]}`, "bob")), w, expenseIn(open, 1, "1"), noon)
	wantCode(t, d.Err, workflow.Internal)
	assert.Truef(t, !d.Stored && d.Err != nil && strings.Contains(d.Err.Cause.Error(), `attribute "odd" of expense contains a NUL`),
		"got %+v", d)
}

func TestTheDataOfAnInstanceIsBounded(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	assert.Equal(t, 1<<20, l.w.MaxData, "by default the bound")
	l.w.MaxData = len(l.inst.Data) + 100
	d := l.must(l.decide(l.command("edit", `{"text":"`+strings.Repeat("x", 50)+`"}`)))
	require.Truef(t, len(d.After.Data) <= l.w.MaxData, "the test's data has %d bytes", len(d.After.Data))
	_, d = l.decide(l.command("edit", `{"text":"`+strings.Repeat("x", 50)+`"}`))
	wantCode(t, d.Err, workflow.DataTooLarge)
	checkRefusal(t, d, l.inst)
	for _, want := range []string{"bytes", "trip", "allows"} {
		assert.Contains(t, d.Err.Message, want, "does not say")
	}
}

// Data that exceeds the bound already, because the bound was larger, may stay and shrink.
func TestDataThatIsLargerAlreadyMayStaySo(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.w.MaxData = 10
	l.inst.Data = append(l.inst.Data, bytes.Repeat([]byte(" "), 100)...) // which the next transition leaves out
	d := l.must(l.decide(l.command("edit", `{}`)))
	assert.Truef(t, len(d.After.Data) > l.w.MaxData, "the test's data has only %d bytes", len(d.After.Data))
	_, d = l.decide(l.command("edit", `{}`))
	wantCode(t, d.Err, workflow.DataTooLarge)
}

// An activity whose result makes the data too large has failed, and is undone; its failure is noted however large the data is.
func TestAResultThatMakesTheDataTooLargeIsAFailure(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.accept("book", `{}`)
	l.w.MaxData = len(l.inst.Data)
	d := l.end(f, Outcome{Result: []byte(`{"text":"seat 7"}`)})
	wantCode(t, d.Err, workflow.ActivityFailed)
	assert.Truef(t, d.After != nil && d.After.State == unbooked && d.Status == transitions.FailedFinal, "it became %+v", d)
	assert.NotEqual(t, 0, len(d.Commands), "what it did is not undone")
}

// The decision after an earlier one must not write into what that one holds: a group of commands keeps them all.
func TestLaterDecisionsDoNotChangeEarlierOnes(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	inst := expenseIn(open, 1, "0")
	inst.Actors["add"] = append(make([]string, 0, 8), "zoe") // room to append in place
	var all, copies []*transitions.Instance
	for _, futures := range [][]string{{"a", "b"}, {"c", "d"}, {"e", "f"}} {
		for _, actor := range futures { // two of one past
			d := Decide(prepared(t, w, onE1("add", `{"amounts":[1]}`, actor)), w, inst, noon)
			require.Nil(t, d.Err)
			all, copies = append(all, d.After), append(copies, clone(d.After))
		}
		inst = all[len(all)-1]
	}
	for i := range all {
		assert.Equalf(t, copies[i], all[i], "decision %d became", i)
	}
}

// Run with -race: an action may return one error value to several goroutines.
func TestAnErrorValueThatIsSharedIsNotChanged(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	var work sync.WaitGroup
	for _, state := range []workflow.State{open, rejected} {
		work.Go(func() {
			for range 100 {
				d := Decide(prepared(t, w, onE1("add", `{"do":"refuse always alike"}`, "bob")), w, expenseIn(state, 1, "1"), noon)
				assert.Truef(t, d.Err != nil && d.Err.State == state, "got %+v, want a refusal in %s", d.Err, state)
			}
		})
	}
	work.Wait()
	e := errSpent.(*workflow.Error)
	assert.Equalf(t, workflow.State(""), e.State, "the workflow's own value was changed: %+v", e)
}

func TestAPanicTellsTheLogAndNotTheCaller(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	d := Decide(prepared(t, w, onE1("add", `{"do":"panic"}`, "bob")), w, expenseIn(open, 1, "1"), noon)
	wantCode(t, d.Err, workflow.Internal)
	assert.False(t, d.Stored, "a defect was stored for good")
	cause := d.Err.Error()
	assert.Truef(t, strings.Contains(cause, "secret of the house: E-1") && strings.Contains(cause, "fixture_test.go"),
		"the log does not learn what and where: %s", cause)
	told := string(transitions.ProblemOf(d.Err).JSON())
	for _, secret := range []string{"secret", "E-1", "fixture_test", "goroutine", "panic"} {
		assert.NotContains(t, told, secret, "the caller is told in")
	}
}
