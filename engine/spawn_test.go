package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// shelf is the data of a parent that remembers the ids of its children.
type shelf struct {
	Books []uuid.UUID `json:"books,omitempty"`
	Lost  string      `json:"lost,omitempty"`
}

// titles is the payload of "put": the business keys of the children that are started, "" for one without.
type titles struct {
	Titles []string `json:"titles,omitempty"`
}

func shelves() func(*engine.Config) {
	put := func(c *workflow.Call, d *shelf, p titles) error {
		for _, title := range p.Titles {
			child := workflow.Child{Workflow: "book", Transition: "bind"}
			if title != "" {
				child = workflow.Child{Workflow: "book", Transition: "print", BusinessKey: title, Payload: titles{Titles: []string{title}}}
			}
			d.Books = append(d.Books, c.Spawn(child))
		}
		return nil
	}
	return flows(workflow.Define("shelf", 1, workflow.Start("build", "open", put),
		workflow.On("put", workflow.From("open"), workflow.Stay, put),
		workflow.Do("order", workflow.From("open"), "ordering", "open",
			func(_ context.Context, _ *workflow.Attempt, _ shelf, p titles) (titles, error) { return p, nil }, put).
			OrElse("open", func(_ *workflow.Call, d *shelf, f workflow.Failure) error { d.Lost = string(f.Kind); return nil }),
		workflow.On("clear", workflow.From("open"), "gone", nothing[shelf, titles])).Final("gone"),
		workflow.Define("book", 1, workflow.Start("bind", "new", nothing[shelf, titles]),
			workflow.Start("print", "new", nothing[shelf, titles]).BusinessKey(func(p titles) string { return p.Titles[0] }),
			workflow.On("read", workflow.From("new"), workflow.Stay, nothing[shelf, titles]),
			workflow.On("sell", workflow.From("new"), "sold", nothing[shelf, titles])).Final("sold"))
}

func onShelf(id uuid.UUID, transition, key, list string) transitions.Command {
	return transitions.Command{Workflow: "shelf", Instance: id, Transition: transition, Key: key, Payload: []byte(`{"titles":[` + list + `]}`)}
}

// shelfOf reads the data of a parent.
func shelfOf(t *testing.T, e *engine.Engine, id uuid.UUID) shelf {
	t.Helper()
	inst, err := e.Read().Instance(t.Context(), "", id)
	require.NoError(t, err)
	var s shelf
	require.NoError(t, json.Unmarshal(inst.Data, &s))
	return s
}

func TestSpawn_ReturnsIDOfListedChild(t *testing.T) {
	t.Parallel()
	pool, e := started(t, shelves())
	id := submit(t, e, onShelf(uuid.Nil, "build", "1", `"","A"`)).Instance
	submit(t, e, onShelf(id, "put", "2", ``))
	submit(t, e, onShelf(id, "put", "3", `"B","","C"`))
	accepted := submit(t, e, onShelf(id, "order", "4", `"D"`))
	r, err := e.Await(t.Context(), transitions.Ref{Scope: accepted.Record.Scope, Key: "4"})
	require.Truef(t, err == nil && r.Err() == nil, "%+v, %v", r, err)
	for range 9 { // another bucket of the table
		submit(t, e, transitions.Command{Workflow: "book", BusinessKey: "B", Transition: "read", Key: uuid.NewString()})
	}
	exec(t, pool, "DELETE FROM pawl.command WHERE phase IS NULL")
	want := shelfOf(t, e, id).Books
	for _, limit := range []int{1, 2, 100} {
		all, _ := children(t, e, inspect.ChildFilter{Parent: id, Limit: limit})
		var got []uuid.UUID
		for i := range all {
			got = append(got, all[i].ID)
		}
		assert.Truef(t, len(got) == 6 && slices.Equal(got, want), "pages of %d: %v, want %v", limit, got, want)
	}
	assert.Equal(t, transitions.InstanceID("default", "book", "B"), want[2], "B")
	sound(t, e, pool)
}

func TestSpawn_TakenBusinessKeyIsRefused(t *testing.T) {
	t.Parallel()
	pool, e := started(t, shelves())
	print := func(title string) transitions.Command {
		return transitions.Command{Workflow: "book", Transition: "print", Key: "print " + title, Payload: []byte(`{"titles":["` + title + `"]}`)}
	}
	submit(t, e, print("A"))
	for i := range 9 { // an instance that has gone on is found, too
		submit(t, e, transitions.Command{Workflow: "book", BusinessKey: "A", Transition: "read", Key: fmt.Sprint(i)})
	}
	id := submit(t, e, onShelf(uuid.Nil, "build", "1", ``)).Instance
	refused := func(c transitions.Command) {
		t.Helper()
		if _, err := e.DryRun(t.Context(), c); err != nil {
			t.Error(err)
		} else if r, _ := e.DryRun(t.Context(), c); workflow.CodeOf(r.Err()) != workflow.AlreadyExists {
			t.Errorf("the dry run answers %v", r.Err())
		}
		for range 2 { // and again
			r, err := e.Submit(t.Context(), c)
			assert.Truef(t, err == nil && workflow.CodeOf(r.Err()) == workflow.AlreadyExists, "%+v, %v", r, err)
		}
	}
	refused(onShelf(id, "put", "2", `"A"`))
	refused(onShelf(id, "put", "3", `"B","A"`))
	refused(onShelf(id, "put", "4", `"B","B"`))
	refused(onShelf(uuid.Nil, "build", "5", `"A"`))
	accepted := submit(t, e, onShelf(id, "order", "6", `"B","A"`))
	r, err := e.Await(t.Context(), transitions.Ref{Scope: accepted.Record.Scope, Key: "6"})
	assert.Truef(t, err == nil && workflow.CodeOf(r.Err()) == workflow.ActivityFailed, "%+v, %v", r, err)
	s := shelfOf(t, e, id)
	assert.Truef(t, s.Lost == string(workflow.FailureRefused) && len(s.Books) == 0, "the parent is %+v", s)
	assert.Equal(t, 1, query[int](t, pool, "SELECT count(*)::int FROM pawl.instance WHERE workflow = 'book'"), "there children, want 1")
	sound(t, e, pool)
}
