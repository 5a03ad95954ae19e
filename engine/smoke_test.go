package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type Counter struct {
	N int `json:"n"`
}
type Open struct {
	Name string `json:"name" validate:"required"`
}
type Add struct {
	By int `json:"by"`
}

var counter = workflow.Define("counter", 1,
	workflow.Start("open", "live", func(c *workflow.Call, d *Counter, p Open) error { return nil }).BusinessKey(func(p Open) string { return p.Name }),
	workflow.Start("make", "live", func(c *workflow.Call, d *Counter, p workflow.None) error { return nil }),
	workflow.On("add", workflow.From("live"), workflow.Stay, func(c *workflow.Call, d *Counter, p Add) error {
		if p.By < 0 {
			return workflow.Refuse("only up")
		}
		d.N += p.By
		return nil
	}),
	workflow.On("end", workflow.From("live"), "done", func(c *workflow.Call, d *Counter, p workflow.None) error { return nil }),
).Final("done")

func start(t *testing.T) *engine.Engine {
	pool := pgtest.Pool(t)
	if _, err := schema.Migrate(t.Context(), pool, "pawl"); err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{counter}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Stop(context.Background()) })
	return e
}

func TestSmoke(t *testing.T) {
	e := start(t)
	ctx := t.Context()
	show := func(r transitions.Receipt, err error) transitions.Receipt {
		t.Helper()
		t.Logf("%d replayed=%v pos=%d v=%d %s err=%v", r.Status, r.Replayed, r.Position, r.Version, r.Body, err)
		return r
	}
	for range 2 {
		show(e.Submit(ctx, transitions.Command{Workflow: "counter", Transition: "open", Key: "a", Payload: []byte(`{"name":"x"}`)}))
	}
	show(e.Submit(ctx, transitions.Command{Workflow: "counter", Transition: "open", Key: "b", Payload: []byte(`{"name":"x"}`)}))
	show(e.Submit(ctx, transitions.Command{Workflow: "counter", Transition: "open", Key: "a", Payload: []byte(`{"name":"y"}`)}))
	for range 2 {
		show(e.Submit(ctx, transitions.Command{Workflow: "counter", Transition: "add", BusinessKey: "x", Key: "c", Payload: []byte(`{"by":2}`)}))
		show(e.Submit(ctx, transitions.Command{Workflow: "counter", Transition: "add", BusinessKey: "x", Key: "d", Payload: []byte(`{"by":-2}`)}))
	}
	show(e.Submit(ctx, transitions.Command{Workflow: "counter", Transition: "add", BusinessKey: "nope", Key: "d", Payload: []byte(`{"by":2}`)}))
	show(e.Submit(ctx, transitions.Command{Workflow: "counter", Transition: "make", Key: "d"}))
	var cs []transitions.Command
	for i := range 600 {
		cs = append(cs, transitions.Command{Workflow: "counter", Transition: "add", BusinessKey: "x", Key: fmt.Sprint("k", i/2), Payload: []byte(`{"by":1}`)})
		if i%3 == 0 {
			cs = append(cs, transitions.Command{Workflow: "counter", Transition: "open", Key: fmt.Sprint("o", i), Payload: []byte(fmt.Sprintf(`{"name":"n%d"}`, i))})
		}
	}
	replies := e.SubmitMany(ctx, cs)
	for i, r := range replies {
		if r.Err != nil {
			t.Fatal(i, r.Err)
		}
	}
	show(replies[len(replies)-1].Receipt, nil)
	inst, err := e.InstanceByKey(ctx, "", "counter", "x")
	t.Logf("%s %v %v", inst.Data, inst.Version, err)
	v, err := e.Verify(ctx, "", [16]byte{})
	t.Logf("%+v %v", v, err)
	f := e.Follow("", 0)
	b, err := f.Next(ctx)
	t.Logf("%d %v %s", len(b.Events), err, b.Events[0].CloudEvent)
	f.Close()
	t.Logf("%+v", e.Stats())
}
