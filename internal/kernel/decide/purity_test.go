package decide

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestDecideIsPure(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	for _, c := range []transitions.Command{
		onE1("add", `{"amounts":[1,2],"do":"change the payload"}`, "bob"),
		onE1("add", `{"amounts":[1],"do":"emit"}`, "bob"),
		onE1("add", `{"amounts":[1],"do":"return"}`, "bob"),
		onE1("add", `{"amounts":[1],"do":"refuse"}`, "bob"),
		onE1("add", `{"amounts":[1],"do":"panic"}`, "bob"),
		onE1("decide", `{"verdict":"no"}`, "bob", "boss"),
		onE1("pay", "", "eve", "cashier"),
		{Transition: "file", Payload: []byte(`{"number":"E-1","total":1}`)},
	} {
		p := prepared(t, w, c)
		canonical, fingerprint := slices.Clone(p.Canonical), p.Fingerprint
		inst := expenseIn(open, 3, "100")
		before := clone(inst)
		first := Decide(p, w, inst, noon)
		second := Decide(p, w, inst, noon)
		for _, d := range []*Decision{&first, &second} {
			if d.Err != nil && d.Err.Code == workflow.Internal {
				d.Err.Cause = nil // its stack names goroutines
			}
		}
		assert.Equalf(t, second, first, "%s %s: decided and then", c.Transition, c.Payload)
		assert.Equalf(t, before, inst, "%s %s: the instance was changed to", c.Transition, c.Payload)
		assert.Truef(t, slices.Equal(p.Canonical, canonical) && p.Fingerprint == fingerprint,
			"%s %s: the command was changed to %s", c.Transition, c.Payload, p.Canonical)
	}
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
	if cause := d.Err.Error(); !strings.Contains(cause, "secret of the house: E-1") || !strings.Contains(cause, "fixture_test.go") {
		t.Errorf("the log does not learn what and where: %s", cause)
	}
	told := string(transitions.ProblemOf(d.Err).JSON())
	for _, secret := range []string{"secret", "E-1", "fixture_test", "goroutine", "panic"} {
		assert.NotContains(t, told, secret, "the caller is told in")
	}
}

func TestAPanicInAGuardIsAnErrorOfItsCommand(t *testing.T) {
	t.Parallel()
	w := built(t, workflow.Define("fragile", 1,
		workflow.Start("begin", open, nothing),
		workflow.On("end", workflow.From(open), dropped, nothing).
			Guard("it holds", func(*workflow.Call, expense) error { panic("it does not") })).Final(dropped))
	p := prepared(t, w, transitions.Command{Workflow: "fragile", Transition: "end", Instance: madeUp})
	d := Decide(p, w, &transitions.Instance{Workflow: "fragile", State: open, Version: 1}, noon)
	wantCode(t, d.Err, workflow.Internal)
}
