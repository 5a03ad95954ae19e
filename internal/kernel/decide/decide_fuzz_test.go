package decide

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// tape turns bytes into choices; when it is over every choice is the first.
type tape struct{ bytes []byte }

func (t *tape) below(n int) int {
	if len(t.bytes) == 0 {
		return 0
	}
	b := t.bytes[0]
	t.bytes = t.bytes[1:]
	return int(b) % n
}

func pick[T any](t *tape, from ...T) T { return from[t.below(len(from))] }

func (t *tape) command() transitions.Command {
	c := transitions.Command{
		Transition: pick(t, "add", "file", "decide", "pay", "drop", "register", "draft"),
		Actor:      pick(t, "ann", "bob", "eve"),
		Roles:      pick(t, nil, []string{"boss"}, []string{"cashier"}, []string{transitions.AnyRole}),
		Key:        fmt.Sprint("k", t.below(4)),
		Options:    transitions.Options{IfVersion: int64(pick(t, 0, 0, 0, 1, 2, 5))},
	}
	switch c.Transition {
	case "file", "register":
		c.Payload = fmt.Appendf(nil, `{"number":%q,"total":%d}`, pick(t, "E-1", "E-1", "E-2"), t.below(3))
		return c
	case "draft":
		return c
	case "add":
		c.Payload = fmt.Appendf(nil, `{"amounts":[%d],"do":%q}`, t.below(9), pick(t, "", "", "emit", "return", "refuse", "panic", "stray"))
	case "decide":
		c.Payload = fmt.Appendf(nil, `{"verdict":%q}`, pick(t, "yes", "no", "wait"))
	}
	c.BusinessKey = pick(t, "E-1", "E-1", "E-1", "E-2")
	return c
}

// FuzzDecide plays a random life of an instance and holds every decision against what must be true of all.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 0, 0, 0, 0, 0, 2, 0, 1, 0, 0, 1, 3, 2, 2, 0, 0, 0, 4, 2, 1, 0, 0, 0})
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		seed := make([]byte, 200)
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		f.Add(seed)
	}
	w := built(f, definition(1))
	f.Fuzz(func(t *testing.T, life []byte) {
		choices := &tape{life}
		var inst *transitions.Instance
		for len(choices.bytes) > 0 {
			p := prepared(t, w, choices.command())
			var kept *transitions.Instance
			if inst != nil {
				kept = clone(inst)
			}
			d := Decide(p, w, inst, noon)
			checkDecision(t, p, w, inst, d)
			require.Falsef(t, inst != nil && !reflect.DeepEqual(inst, kept), "the instance was changed to %+v", inst)
			if again := Decide(p, w, inst, noon); !sameDecision(d, again) {
				t.Fatalf("decided %+v and then %+v", d, again)
			}
			if d.After != nil && d.After.BusinessKey == "E-1" {
				inst = d.After
			}
		}
	})
}

func sameDecision(a, b Decision) bool {
	if a.Err != nil && b.Err != nil && a.Err.Code == workflow.Internal && b.Err.Code == workflow.Internal {
		return a.Err.Message == b.Err.Message // the causes have stacks
	}
	return reflect.DeepEqual(a, b)
}

func checkDecision(t *testing.T, p *Prepared, w *workflow.Workflow, inst *transitions.Instance, d Decision) {
	t.Helper()
	require.Equalf(t, (d.Status == transitions.Succeeded), (d.Err == nil), "status %q with error %v", d.Status, d.Err)
	if d.Err != nil {
		checkRefusal(t, d, nil)
		return
	}
	require.Truef(t, d.Stored && jsontext.Value(d.Body).IsValid(), "stored %v, body %s", d.Stored, d.Body)
	if d.After == nil {
		require.Truef(t, p.Creates && inst != nil && d.Code == 200 && len(d.Events) == 0, "nothing changes: %+v", d)
		return
	}
	before := transitions.Instance{}
	if !p.Creates {
		before = *inst
	}
	after := d.After
	switch {
	case after.Version != before.Version+1 || d.Entry.Version != after.Version:
		t.Fatalf("version %d and entry %d after %d", after.Version, d.Entry.Version, before.Version)
	case w.IsFinal(before.State):
		t.Fatalf("it left the final state %s", before.State)
	case !p.Creates && !d.Step.Leaves(before.State), d.Step.Name != p.Transition:
		t.Fatalf("step %s from %s to %s", d.Step.Name, before.State, after.State)
	case !slices.Contains(d.Step.To, after.State) && !(slices.Contains(d.Step.To, workflow.Stay) && after.State == before.State):
		t.Fatalf("%s leads to %s", d.Step.Name, after.State)
	case d.Entry.From != before.State || d.Entry.To != after.State:
		t.Fatalf("the entry says %s to %s, not %s to %s", d.Entry.From, d.Entry.To, before.State, after.State)
	case after.Open == w.IsFinal(after.State):
		t.Fatalf("open is %v in %s", after.Open, after.State)
	case after.ID != p.Instance || after.Tenant != p.Tenant || after.Workflow != "expense":
		t.Fatalf("it changed another instance: %+v", after)
	case (d.Code == 201) != p.Creates:
		t.Fatalf("answered %d", d.Code)
	case p.IfVersion != 0 && p.IfVersion != before.Version:
		t.Fatalf("version %d was asked for, and %d changed", p.IfVersion, before.Version)
	case d.Events[0].Type != "expense."+p.Transition:
		t.Fatalf("the first event is %s", d.Events[0].Type)
	}
	for _, other := range d.Step.NotBy {
		require.Falsef(t, slices.Contains(before.Actors[other], p.Actor), "%s did %s after %s", p.Actor, p.Transition, other)
	}
	types := map[string]bool{}
	for i, e := range d.Events {
		if e.Ordinal != i || e.Instance != after.ID || e.Version != after.Version || types[e.Type] || !jsontext.Value(e.Payload).IsValid() {
			t.Fatalf("event %d is %+v", i, e)
		}
		types[e.Type] = true
	}
	result, err := transitions.Receipt{Status: d.Code, Body: d.Body}.Result()
	require.Truef(t, err == nil && result.Version == after.Version && result.State == after.State && result.Instance == after.ID,
		"the answer is %+v, %v", result, err)
}
