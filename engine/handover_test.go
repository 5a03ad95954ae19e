package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// What builds of one version know of a book.
type (
	olderBook struct {
		Pages  []olderPage `json:"pages"`
		Copies int32       `json:"copies"`
	}
	newerBook struct {
		Pages  []newerPage `json:"pages"`
		Copies int64       `json:"copies"`
	}
)

// books is a workflow over the data of some build, whose activity prints.
func books[D, R any](write func(*D), print func() (R, error), printed func(*D), more ...func(*workflow.Activity[D, workflow.None, R]),
) *workflow.Definition[D] {
	do := workflow.Do("print", workflow.From("written"), "printing", "printed",
		func(context.Context, *workflow.Attempt, D, workflow.None) (R, error) { return print() },
		func(_ *workflow.Call, d *D, _ R) error { printed(d); return nil }).
		OrElse("written", func(_ *workflow.Call, d *D, _ workflow.Failure) error { printed(d); return nil }).
		Retry(workflow.Retry{Attempts: 2, First: time.Millisecond})
	for _, say := range more {
		say(do)
	}
	return workflow.Define("book", 1,
		workflow.Start("write", "written", func(_ *workflow.Call, d *D, _ workflow.None) error { write(d); return nil }), do,
		workflow.On("burn", workflow.From("printed"), "burnt", nothing[D, workflow.None])).Final("burnt")
}

// An older build has executed an activity and cannot store its result: a capable node stores it. The activity does not run twice, and no
// operator is needed.
func TestOutcomeIsStoredByCapableNode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		state workflow.State
	}{"a result": {nil, "printed"}, "a failure": {workflow.Final(fmt.Errorf("no paper")), "written"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			var prints atomic.Int64
			print := func() (int, error) { prints.Add(1); return 1, c.err }
			older := newEngine(t, pool, running(books(func(*olderBook) {}, print, func(d *olderBook) { d.Pages = append(d.Pages[1:], olderPage{9}) },
				func(a *workflow.Activity[olderBook, workflow.None, int]) { a.AskOperator() })))
			newest := running(books(func(d *newerBook) { d.Pages = []newerPage{{1, "red"}, {2, "blue"}} }, print,
				func(d *newerBook) { d.Pages = append(d.Pages[1:], newerPage{9, ""}) },
				func(a *workflow.Activity[newerBook, workflow.None, int]) { a.AskOperator() }))
			accepts := newEngine(t, pool, newest, func(c *engine.Config) { c.InFlight.Workers = -1 })
			id := submit(t, accepts, transitions.Command{Workflow: "book", Transition: "write", Key: "w"}).Instance
			work := submit(t, older, transitions.Command{Workflow: "book", Transition: "print", Key: "p", Instance: id})
			eventually(t, "the older node leaves it to others", func() bool {
				c, err := accepts.Read().Command(t.Context(), transitions.Ref{Scope: work.Record.Scope, Key: "p"})
				return err == nil && c.Attempt > 0 && c.Status == transitions.Pending
			})
			older.Stop(t.Context())
			newer := newEngine(t, pool, newest)
			r, err := newer.Await(t.Context(), transitions.Ref{Scope: work.Record.Scope, Key: "p"})
			require.Truef(t, err == nil && (r.Err() == nil) == (c.err == nil), "it ends with %+v, %v", r, err)
			one, err := newer.Read().Command(t.Context(), transitions.Ref{Scope: work.Record.Scope, Key: "p"})
			assert.Truef(t, err == nil && one.Attempt >= 2 && one.Failures == 0 && prints.Load() == 1,
				"%d prints; attempt %d, %d failures, %v", prints.Load(), one.Attempt, one.Failures, err)
			inst, err := older.Read().Instance(t.Context(), "", id)
			want := `{"number":2,"ink":"blue"}`
			assert.Truef(t, err == nil && inst.State == c.state && strings.Contains(string(inst.Data), want),
				"%s: %s, %v", inst.State, inst.Data, err)
		})
	}
}

// A member may have a wider type now. An older build leaves values that it cannot read to other nodes, which does not count as a failure.
func TestUnreadableWorkIsLeftToOthers(t *testing.T) {
	t.Parallel()
	pool := database(t)
	print := func() (int, error) { return 1, nil }
	small := func() workflow.Source { return books(func(d *olderBook) { d.Copies = 1 }, print, func(*olderBook) {}) }
	large := func() workflow.Source {
		return books(func(d *newerBook) { d.Copies = 1 << 40 }, print, func(*newerBook) {})
	}
	older := newEngine(t, pool, running(small()))
	asks := newEngine(t, pool, running(large()), func(c *engine.Config) { c.InFlight.Workers = -1 })
	id := submit(t, asks, transitions.Command{Workflow: "book", Transition: "write", Key: "w"}).Instance
	_, err := older.Submit(t.Context(), transitions.Command{Workflow: "book", Transition: "print", Key: "p", Instance: id})
	assert.Truef(t, workflow.CodeOf(err) == workflow.NotOnThisNode && strings.Contains(err.Error(), `"/copies"`), "the older build: %v", err)
	work := submit(t, asks, transitions.Command{Workflow: "book", Transition: "print", Key: "p", Instance: id})
	await.Eventually(t, "the older node has looked at it", func() bool {
		c, err := asks.Read().Command(t.Context(), transitions.Ref{Scope: work.Record.Scope, Key: "p"})
		return err == nil && c.Attempt > 0 && strings.Contains(c.Failure, "cannot read the data")
	})
	older.Stop(t.Context())
	assert.NoError(t, startAndStop(t, engine.Config{Pool: pool, Workflows: []workflow.Source{small()}}), "the older build starts again")
	does := newEngine(t, pool, running(large()))
	r, err := does.Await(t.Context(), transitions.Ref{Scope: work.Record.Scope, Key: "p"})
	require.Truef(t, err == nil && r.Err() == nil, "it ends with %+v, %v", r, err)
	c, err := does.Read().Command(t.Context(), transitions.Ref{Scope: work.Record.Scope, Key: "p"})
	assert.Truef(t, err == nil && c.Failures == 0, "%d failures, %v", c.Failures, err)
}

// Results are kept for undos, and for nodes that store the results of others.
func TestABuildThatCannotReadResultsIsRefused(t *testing.T) {
	t.Parallel()
	pool := database(t)
	type receipt struct {
		Number string `json:"number"`
	}
	type longer struct {
		receipt
		Paper string `json:"paper"`
	}
	nothing := func(*olderBook) {}
	for _, c := range []struct {
		w    workflow.Source
		want string
	}{
		{books(nothing, func() (receipt, error) { return receipt{}, nil }, nothing), ""},
		{books(nothing, func() (longer, error) { return longer{}, nil }, nothing), ""},
		{books(nothing, func() (receipt, error) { return receipt{}, nil }, nothing), ""}, // which ran here before
		{books(nothing, func() (string, error) { return "", nil }, nothing), `"result print" (object, now string)`},
		{books(nothing, func() (struct{}, error) { return struct{}{}, nil }, nothing), `"result print/number" (string)`},
		{books(nothing, func() (struct{}, error) { return struct{}{}, nil }, nothing).
			DataChanged("result print/number", "result print/paper"), ""},
	} {
		err := startAndStop(t, engine.Config{Pool: pool, Workflows: []workflow.Source{c.w}})
		assert.Truef(t, (c.want != "" || err == nil) && (c.want == "" || err != nil && strings.Contains(err.Error(), c.want)),
			"%v, want %q", err, c.want)
	}
}
