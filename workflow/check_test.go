package workflow

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type badData struct{ Wait time.Duration }

type namedPayload struct {
	Name string `json:"name"`
}

func nothing[P any](*Call, *badData, P) error { return nil }

func always(*Call, badData) error { return nil }

// mistaken has every mistake that a definition with a start can have.
func mistaken() *Definition[badData] {
	long := State(strings.Repeat("s", 65))
	return Define("Order!", 0,
		Start("place", "placed", nothing[None]).Or(Stay).NotBy("pay"),
		Start[badData, None]("begin", "placed", nil).BusinessKey(nil),
		Start("twice", "placed", nothing[None]),
		Start("twice", "placed", nothing[None]),
		On("twice", From("placed"), "paid", nothing[None]), // which is none
		nil,
		On("", From("placed"), "paid", nothing[None]),
		On("history", From("placed"), "paid", nothing[None]),
		On("nowhere", From(), "paid", nothing[None]),
		On("stay", From(Stay), "paid", nothing[None]),
		On("keyed", From("placed"), "paid", nothing[None]).BusinessKey(func(None) string { return "" }),
		On("refuse", From("placed"), "paid", nothing[None]).RefuseExisting(),
		On("from-twice", From("placed", "placed"), "paid", nothing[None]),
		On("to-twice", From("placed"), "paid", nothing[None]).Or("paid"),
		On("pay", From("placed"), "paid", nothing[None]).NotBy("nobody").Role("boss").
			Guard("", always).Guard("open", nil).Doc("\xff"),
		On("split", From("placed"), "paid", nothing[None]),
		On("split", From("placed"), "paid", nothing[namedPayload]),
		On("list", From("placed"), "paid", nothing[[]string]),
		On("tagged", From("placed"), "paid", nothing[struct {
			A bool `validate:"omitempty,min=1"`
		}]),
		On("wake", From("asleep"), "paid", nothing[None]),
		On("end", From("placed"), "lost", nothing[None]),
		On("reopen", From("closed"), "placed", nothing[None]),
		On("close", From("paid"), "closed", nothing[None]),
		On("bad", From("placed"), "UPPER", nothing[None]).Or(long),
	).Final("closed", "closed", "paradise", "UPPER", long).
		Roles("clerk", "Warehouse").
		Attr("customer", func(badData) string { return "" }).
		Attr("customer", nil).
		Attr("", func(badData) string { return "" })
}

func TestBuildReportsEveryMistakeAtOnce(t *testing.T) {
	const names = "is not 1 to 64 of a-z, 0-9, _ and -"
	want := []string{
		`part 6 of the definition is nil`,
		`the workflow's name "Order!" ` + names,
		`the version is 0; versions count from 1`,
		`the state's name "UPPER" ` + names,
		`the state's name "` + strings.Repeat("s", 65) + `" ` + names,
		`attribute "customer" is declared twice`,
		`the attribute's name "" ` + names,
		`transition "place" creates the instance, so it cannot stay in a state`,
		`transition "place" creates the instance, so "pay" cannot have happened before`,
		`transition "begin" has no action`,
		`transition "begin" has a business key without a function`,
		`the transition's name "" ` + names,
		`a transition cannot be named "history": the REST interface uses that name`,
		`transition "nowhere" leaves no state`,
		`transition "stay" leaves "(stay)", which is a target, not a state`,
		`transition "keyed" declares a business key, but it creates nothing`,
		`transition "refuse" refuses existing instances, but has no business key`,
		`transition "from-twice" names state "placed" twice in From`,
		`transition "to-twice" names target "paid" twice`,
		`transition "pay" excludes the actors of "nobody", which does not exist`,
		`transition "pay" has guard "open" without a function`,
		`transition "pay" has a guard without a name`,
		`transition "pay" has a Doc or a guard's name that is not UTF-8`,
		`transition "list": payload []string has no JSON Schema: it must be a struct that is decoded field by field`,
		`transition "tagged": payload struct { A bool "validate:\"omitempty,min=1\"" } has no JSON Schema: ` +
			`field A: rule "min=1": the validator cannot apply it: Bad field type bool`,
		`transition "twice" creates instances and is declared so twice; one name has one start`,
		`transition "split" is declared with payload workflow.None and with workflow.namedPayload; one name has one payload`,
		`transition "split" is ambiguous: two declarations leave state "placed"`,
		`state "asleep" cannot be reached from a start`,
		`state "lost" is a dead end: nothing leaves it and it is not declared final`,
		`state "closed" is final, but "reopen" leaves it`,
		`final state "paradise" is unknown: no transition mentions it`,
		`state "closed" is declared final twice`,
		`transition "pay" requires role "boss", which is not among the declared Roles`,
		`the role's name "Warehouse" ` + names,
		`the data workflow.badData cannot be stored as JSON: member Wait: time.Duration: no default representation`,
		`attribute "customer" has no function`,
	}
	w, err := mistaken().Build()
	assert.Nil(t, w, "a workflow came out of a mistaken definition")
	m, ok := errors.AsType[*Mistakes](err)
	require.Truef(t, ok, "got %v", err)
	assert.Equal(t, "Order!", m.Workflow, "the mistakes are about")
	for _, text := range want {
		assert.Contains(t, m.List, text, "missing")
	}
	for _, text := range m.List {
		assert.Contains(t, want, text, "unexpected")
	}
	assert.True(t, slices.Equal(m.List, want), "the order is another one")
	for _, text := range m.List {
		assert.Containsf(t, err.Error(), "\n  - "+text, "the error's text lacks %s", text)
	}
	assert.True(t, strings.HasPrefix(err.Error(), `workflow "Order!" has 37 mistakes:`), err)
}

func TestBuildWantsAStart(t *testing.T) {
	_, err := Define("w", 1, On("go", From("a"), "b", func(*Call, *struct{}, None) error { return nil })).Final("b").Build()
	want := "workflow \"w\" has a mistake:\n  - nothing starts it: declare a workflow.Start"
	assert.EqualError(t, err, want)
}

// What is added to a transition or a definition later is not in a workflow that
// is built.
func TestBuiltWorkflowDoesNotChange(t *testing.T) {
	place := Start("place", "placed", func(*Call, *struct{}, None) error { return nil })
	end := On("end", From("placed"), "ended", func(*Call, *struct{}, None) error { return nil })
	d := Define("w", 1, place, end).Final("ended").Attr("a", func(struct{}) string { return "x" })
	w, err := d.Build()
	require.NoError(t, err)
	end.Role("clerk").Or("placed").Doc("later").
		Guard("late", func(*Call, struct{}) error { return errors.New("too late") })
	d.Final("placed").Roles("clerk").Attr("b", func(struct{}) string { return "y" })

	s := w.Leaving("end", "placed")
	assert.Truef(t, len(s.Roles) == 0 && len(s.To) == 1 && s.Doc == "" && len(s.Guards) == 0, "the step changed: %+v", s)
	assert.Nil(t, s.Check(Facts{}, nil), "a later guard refuses")
	assert.Truef(t, len(w.Finals) == 1 && !w.IsFinal("placed") && len(w.Roles) == 0, "the workflow changed: %+v", w)
	attributes, err := w.AttributesOf([]byte(`{}`))
	assert.Truef(t, err == nil && len(attributes) == 1 && attributes["a"] == "x", "attributes: %v %v", attributes, err)

	again, err := d.Build()
	if err == nil || again != nil {
		t.Error("the definition forgot what was added to it") // "placed" is final now, and something leaves it
	}
}

// The hash is over what the definition says: the same for two builds, another
// for every change.
func TestHashFollowsTheDeclaration(t *testing.T) {
	type wide struct {
		Name string `json:"name" validate:"max=3"`
	}
	build := func(change func(*Transition[struct{}, None]) Part[struct{}], version int) string {
		end := On("end", From("placed"), "ended", func(*Call, *struct{}, None) error { return nil })
		w, err := Define("w", version, Start("place", "placed", func(*Call, *struct{}, None) error { return nil }),
			change(end)).Final("ended").Roles("clerk").Build()
		require.NoError(t, err)
		return w.Hash
	}
	same := func(e *Transition[struct{}, None]) Part[struct{}] { return e }
	first := build(same, 1)
	assert.Truef(t, len(first) == 64 && first == build(same, 1), "two builds: %s and %s", first, build(same, 1))
	hashes := map[string]bool{first: true, build(same, 2): true}
	for _, change := range []func(*Transition[struct{}, None]) Part[struct{}]{
		func(e *Transition[struct{}, None]) Part[struct{}] { return e.Role("clerk") },
		func(e *Transition[struct{}, None]) Part[struct{}] { return e.NotBy("place") },
		func(e *Transition[struct{}, None]) Part[struct{}] { return e.Or("placed") },
		func(e *Transition[struct{}, None]) Part[struct{}] { return e.Doc("d") },
		func(e *Transition[struct{}, None]) Part[struct{}] {
			return e.Guard("g", func(*Call, struct{}) error { return nil })
		},
		func(*Transition[struct{}, None]) Part[struct{}] {
			return On("end", From("placed"), "ended", func(*Call, *struct{}, wide) error { return nil })
		},
	} {
		hashes[build(change, 1)] = true
	}
	assert.Len(t, hashes, 8, "8 definitions have hashes")
}
