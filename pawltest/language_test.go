package pawltest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
)

// One name begins a case and goes on with it, and what it does outside depends on where it is.
func TestARunTakesOneNameAsAnEngineDoes(t *testing.T) {
	t.Parallel()
	w := newTwins(t)
	w.keys = []string{"A", "B"}
	later := func(c transitions.Command) transitions.Command {
		c.NotBefore = pawltest.Begin.Add(time.Minute)
		return c
	}
	for _, name := range w.keys {
		w.do("", "book", "book "+name, name)
	}
	w.do("A", "begin", "1", "") // on A
	w.do("A", "begin", "1", "")
	w.do("Z", "begin", "2", "") // on nobody
	w.submit(later(onMove("A", "begin", "3", "later")))
	w.submit(later(onMove("", "book", "4", "C")))
	w.do("A", "rest", "rest", "")
	w.do("A", "call", "5", "")
	w.do("B", "call", "5", "")
	w.skip(time.Second)
	w.do("B", "finish", "6", "never") // undoes what was called
	w.do("A", "leave", "6", "")
	w.skip(time.Second)
	w.keys = append(w.keys, "C")
	w.skip(time.Minute)
	w.do("C", "rest", "rest", "")
	w.do("C", "call", "7", "")
	w.skip(0)
	w.do("C", "move", "8", "never")
	w.skip(0)
	w.do("C", "finish", "9", "never")
	w.skip(time.Second)
	w.verify()
	r, err := w.e.Submit(t.Context(), transitions.Command{Workflow: "move", Transition: "begin", Key: "new"})
	assert.Truef(t, err == nil && r.Status == 201, "without a name of an instance it is to begin one: %d, %v", r.Status, err)
}

// Who may not do something is the same on both.
func TestARunExcludesWhomAnEngineExcludes(t *testing.T) {
	t.Parallel()
	w := newTwins(t)
	w.keys = []string{"A"}
	keys := 0
	by := func(actor, transition, text string) {
		t.Helper()
		keys++
		w.submit(transitions.Command{Workflow: "move", BusinessKey: "A", Transition: transition, Key: fmt.Sprint(keys), Actor: actor,
			Payload: fmt.Appendf(nil, `{"text":%q}`, text)})
	}
	w.submit(transitions.Command{Workflow: "move", Transition: "book", Key: "book A", Payload: []byte(`{"text":"A"}`)})
	by("ann", "write", "1")
	by("bob", "write", "2")
	by("ann", "check", "")
	by("bob", "check", "no")
	by("ann", "write", "3")
	by("ann", "check", "no")
	by("ann", "finish", "never")
	w.skip(0)
	by("eve", "call", "busy once")
	w.skip(0)
	by("ann", "check", "no")
	by("eve", "check", "no")
	w.skip(time.Second)
	by("eve", "check", "no")
	by("bob", "call", "never")
	w.skip(time.Second)
	by("bob", "check", "")
	by("ann", "write", "4")
	by("eve", "finish", "busy")
	w.skip(time.Second)
	by("bob", "check", "")
	w.skip(2 * time.Second)
	w.verify()
	inst, err := w.e.Read().Instance(t.Context(), "", idOf("A"))
	assert.Truef(t, err == nil && fmt.Sprint(inst.Actors) == "map[call:[eve] finish:[eve] write:[bob ann]]",
		"the actors are %v, %v", inst.Actors, err)
}

// What has happened before is the same on both, and so are the timers that it has passed.
func TestARunImportsAsAnEngineDoes(t *testing.T) {
	t.Parallel()
	w := newTwins(t)
	w.keys = []string{"A"}
	past := func(key, transition string, at time.Time) transitions.Command {
		c := transitions.Command{Workflow: "move", Transition: transition, Key: key, Payload: []byte(`{"text":"A"}`),
			Options: transitions.Options{HappenedAt: at}}
		if transition != "book" {
			c.BusinessKey = "A"
		}
		return c
	}
	book := past("1", "book", pawltest.Begin.Add(-2*time.Hour))
	if r, err := w.e.DryRun(t.Context(), book); err != nil || !strings.Contains(string(r.Body),
		`"overdue":[{"timer":"reminder","transition":"remind","due":"2025-12-31T23:00:00Z","fires":"2026-01-01T01:00:00Z"}]`) {
		t.Errorf("before it is done: %s, %v", r.Body, err)
	}
	w.submit(book)
	w.submit(book)
	w.submit(past("1", "book", pawltest.Begin.Add(-time.Hour)))
	w.submit(past("2", "write", pawltest.Begin.Add(-time.Hour)))
	w.submit(past("3", "call", pawltest.Begin.Add(-time.Hour)))
	w.submit(past("4", "write", pawltest.Begin.Add(time.Hour)))
	w.skip(time.Second)
	w.skip(time.Hour)
	history, err := w.e.Read().History(t.Context(), "", idOf("A"), 0, 0)
	assert.Truef(t, err == nil && len(history) == 3 && history[1].Cause == "import 2025-12-31T23:00:00Z" &&
		history[2].Transition == "remind" && history[2].Cause == "", "the history is %+v, %v", history, err)
	w.verify()
}

// verify holds what the engine has written against its audit chain.
func (w *twins) verify() {
	w.t.Helper()
	v, err := w.e.Admin().Verify(w.t.Context(), "", uuid.Nil)
	assert.Truef(w.t, err == nil && len(v.Broken) <= 0, "verify: %+v, %v", v.Broken, err)
}
