package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Where things that are each simple meet: children, hooks, callers' transactions,
// timers, activities, commands that leave.

func keep(*workflow.Call, *struct{}, workflow.None) error { return nil }

// kid is what the workflow mum starts, n at once.
var kid = workflow.Define("kid", 1,
	workflow.Start("born", "alive", keep), workflow.On("die", workflow.From("alive"), "dead", keep)).Final("dead")

func mum(n int) *workflow.Transition[struct{}, workflow.None] {
	return workflow.On("bear", workflow.From("open"), workflow.Stay, func(c *workflow.Call, _ *struct{}, _ workflow.None) error {
		for range n {
			c.Spawn(workflow.Child{Workflow: "kid", Transition: "born"})
		}
		return nil
	})
}

func mother(bear workflow.Part[struct{}]) *workflow.Definition[struct{}] {
	return workflow.Define("mum", 1, workflow.Start("open", "open", keep), bear,
		workflow.On("close", workflow.From("open"), "closed", keep)).Final("closed")
}

func flows(ws ...workflow.Source) func(*engine.Config) {
	return func(c *engine.Config) { c.Workflows = ws }
}

// sound fails the test unless every chain and the log verify, and every
// transition has its event at its position.
func sound(t *testing.T, e *engine.Engine, pool *pgxpool.Pool) {
	t.Helper()
	v, err := e.Admin().Verify(t.Context(), "", [16]byte{})
	assert.Truef(t, err == nil && len(v.Broken) == 0, "%+v, %v", v, err)
	n := query[int](t, pool, `SELECT count(*)::int FROM pawl.audit a FULL JOIN (SELECT * FROM pawl.outbox WHERE ordinal = 0) o
		ON o.tenant = a.tenant AND o.position = a.position AND o.instance = a.instance AND o.version = a.version
		WHERE o.position IS NULL OR a.position IS NULL`)
	assert.Truef(t, n <= 0, "%d transitions and events without each other", n)
}

func TestChildrenInACallersTransaction(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			pool, e := started(t, flows(kid, mother(mum(n))))
			r := submit(t, e, transitions.Command{Workflow: "mum", Transition: "open", Key: "1"})
			err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				r, err := e.SubmitTx(t.Context(), tx, transitions.Command{Workflow: "mum", Transition: "bear", Key: "2", Instance: r.Instance})
				if err == nil {
					err = r.Err()
				}
				return err
			})
			require.NoError(t, err)
			assert.Equal(t, n, query[int](t, pool, "SELECT count(*)::int FROM pawl.audit WHERE workflow = 'kid' AND position > 2"), "children")
			sound(t, e, pool)
		})
	}
}

func TestARefusingHookLeavesNoChildren(t *testing.T) {
	t.Parallel()
	pool := database(t)
	refusing := func(context.Context, pgx.Tx, struct{}, workflow.None) error { return workflow.Refuse("no") }
	e := newEngine(t, pool, flows(kid, mother(engine.InTx(mum(2), refusing))))
	r := submit(t, e, transitions.Command{Workflow: "mum", Transition: "open", Key: "1"})
	refused, err := e.Submit(t.Context(), transitions.Command{Workflow: "mum", Transition: "bear", Key: "2", Instance: r.Instance})
	assert.Truef(t, err == nil && refused.Refused(), "%+v, %v", refused, err)
	assert.Equal(t, 0, query[int](t, pool, "SELECT count(*)::int FROM pawl.instance WHERE workflow = 'kid'"), "children of a refused command")
	sound(t, e, pool)
}

// skipping is a clock that goes, and can be set forward.
type skipping struct{ by atomic.Int64 }

func (s *skipping) config(c *engine.Config) {
	c.Now = func() time.Time { return time.Now().Add(time.Duration(s.by.Load())) }
}

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
