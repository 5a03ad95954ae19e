package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The types of an older build and of a newer build of the same version.
type olderLetter struct {
	Text  string `json:"text"`
	Steps int    `json:"steps"`
	To    struct {
		Name string `json:"name,omitzero"`
	} `json:"to,omitzero"`
	Pages []olderPage `json:"pages"`
}

type olderPage struct {
	Number int `json:"number"`
}

type newerLetter struct {
	Text  string `json:"text"`
	Steps int    `json:"steps"`
	To    struct {
		Name string `json:"name,omitzero"`
		City string `json:"city,omitzero"`
	} `json:"to,omitzero"`
	Pages []newerPage       `json:"pages"`
	Tags  map[string]string `json:"tags"`
}

type newerPage struct {
	Number int    `json:"number"`
	Ink    string `json:"ink"`
}

// lettersOf is a workflow over the data of some build.
func lettersOf[D any](write, step func(*D)) *workflow.Definition[D] {
	return workflow.Define("letter", 1,
		workflow.Start("write", "written", func(_ *workflow.Call, d *D, _ workflow.None) error { write(d); return nil }),
		workflow.On("step", workflow.From("written"), workflow.Stay, func(_ *workflow.Call, d *D, _ workflow.None) error { step(d); return nil }),
		workflow.On("send", workflow.From("written"), "sent", nothing[D, workflow.None]),
	).Final("sent")
}

func olderLetters() *workflow.Definition[olderLetter] {
	return lettersOf(func(d *olderLetter) { d.Text = "old" }, func(d *olderLetter) {
		d.Steps++
		d.Pages = append(d.Pages, olderPage{100 + d.Steps})
	}).Attr("text", func(d olderLetter) string { return d.Text })
}

func newerLetters() *workflow.Definition[newerLetter] {
	return lettersOf(func(d *newerLetter) {
		d.Text, d.To.City, d.Tags = "new", "Graz", map[string]string{"a": "b"}
		d.Pages = []newerPage{{1, "red"}, {2, "blue"}}
	}, func(d *newerLetter) { d.Steps++; d.Tags[fmt.Sprint(d.Steps)] = "newer" }).Attr("text", func(d newerLetter) string { return d.Text }).
		Attr("city", func(d newerLetter) string { return d.To.City })
}

// Two builds of one version, one with additional members, alternate on one instance. No member and no attribute is lost, whichever starts
// first.
func TestTwoBuildsTakeTurnsOnOneInstance(t *testing.T) {
	t.Parallel()
	pool, older := started(t, running(olderLetters()))
	newer := newEngine(t, pool, running(newerLetters()))
	olderAgain := newEngine(t, pool, running(olderLetters())) // as a roll-back, or a node that restarts
	begun := submit(t, newer, transitions.Command{Workflow: "letter", Transition: "write", Key: "w"})
	for i, e := range []*engine.Engine{older, newer, olderAgain, older, newer} {
		submit(t, e, transitions.Command{Workflow: "letter", Transition: "step", Key: fmt.Sprint(i), Instance: begun.Instance})
	}
	inst, err := older.Read().Instance(t.Context(), "", begun.Instance)
	require.NoError(t, err)
	got := jsontext.Value(inst.Data)
	want := jsontext.Value(`{"text":"new","steps":5,"to":{"city":"Graz"},"tags":{"a":"b","2":"newer","5":"newer"},"pages":[
		{"number":1,"ink":"red"},{"number":2,"ink":"blue"},{"number":101,"ink":""},{"number":103,"ink":""},{"number":104,"ink":""}]}`)
	assert.Truef(t, got.Canonicalize() == nil && want.Canonicalize() == nil && string(got) == string(want), "got  %s\nwant %s", got, want)
	assert.Truef(t, inst.Attributes["city"] == "Graz" && inst.Attributes["text"] == "new", "attributes %v", inst.Attributes)
}

// Data that an older build cannot keep is written by a newer one; no node refuses it finally.
func TestUnknownMembers_OtherNode(t *testing.T) {
	t.Parallel()
	pool := database(t)
	older := newEngine(t, pool, running(lettersOf(func(*olderLetter) {},
		func(d *olderLetter) { d.Pages = append(d.Pages[1:], olderPage{9}) })))
	newer := newEngine(t, pool, running(newerLetters()))
	begun := submit(t, newer, transitions.Command{Workflow: "letter", Transition: "write", Key: "w"})
	step := transitions.Command{Workflow: "letter", Transition: "step", Key: "s", Instance: begun.Instance}
	_, err := older.Submit(t.Context(), step)
	require.Truef(t, workflow.CodeOf(err) == workflow.NotOnThisNode && strings.Contains(err.Error(), `the elements of "/pages"`),
		"the older build: %v", err)
	r := submit(t, newer, step)
	assert.Truef(t, !r.Refused() && !r.Replayed, "the newer build: %+v", r)
}

func TestUnreadableRecordedDataIsRefused(t *testing.T) {
	t.Parallel()
	pool := database(t)
	started := func(w workflow.Source) error {
		return startAndStop(t, engine.Config{Pool: pool, Workflows: []workflow.Source{w}})
	}
	nothing := func(*olderLetter) {}
	require.NoError(t, started(newerLetters()))
	if err := started(olderLetters()); err == nil {
		t.Error("a build that has not run here before, and lacks members, was taken")
	} else {
		for _, want := range []string{`workflow "letter" version 1`, "removed, or renamed", `"/to/city" (string)`, `"/pages/*/ink" (string)`,
			`"/tags" (object)`, `"attribute city"`, "version 2", "DataChanged"} {
			assert.Containsf(t, err.Error(), want, "in %v", err)
		}
	}
	type renamed struct {
		newerLetter
		Steps string `json:"steps"`
	}
	another := lettersOf(func(*renamed) {}, func(*renamed) {}).Attr("text", func(d renamed) string { return d.Text }).
		Attr("city", func(d renamed) string { return d.To.City })
	assert.ErrorContains(t, started(another), `"/steps" (int64, now string)`, "a member of another type")
	meant := lettersOf(nothing, nothing).DataChanged("/to/city", "/pages/*/ink", "/tags", "attribute text", "attribute city")
	assert.NoError(t, started(meant), "where it is meant")
	assert.NoError(t, started(lettersOf(nothing, nothing)), "once it was meant it is the rule")
	assert.NoError(t, started(newerLetters()), "back again adds the members")
}

// A member that is meant to go is dropped by the next transition.
func TestAMemberThatIsMeantToGoIsDropped(t *testing.T) {
	t.Parallel()
	pool, newer := started(t, running(newerLetters()))
	begun := submit(t, newer, transitions.Command{Workflow: "letter", Transition: "write", Key: "w"})
	next := newEngine(t, pool, running(olderLetters().DataChanged("/to/city", "/pages/*/ink", "/tags", "attribute city")))
	submit(t, next, transitions.Command{Workflow: "letter", Transition: "step", Key: "s", Instance: begun.Instance})
	inst, err := next.Read().Instance(t.Context(), "", begun.Instance)
	require.NoError(t, err)
	var members map[string]any
	err = json.Unmarshal(inst.Data, &members)
	assert.Truef(t, err == nil && len(members) == 3 && !strings.Contains(string(inst.Data), "ink"), "%s, %v", inst.Data, err)
	assert.Truef(t, len(inst.Attributes) == 1 && inst.Attributes["text"] == "new", "attributes %v", inst.Attributes)
}
