package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type tally struct {
	N int `json:"n"`
}

type opening struct {
	Name string `json:"name"`
}

// counter returns a workflow whose instances count.
func counter() workflow.Source {
	return workflow.Define("counter", 1,
		workflow.Start("open", "live", func(*workflow.Call, *tally, opening) error { return nil }).
			BusinessKey(func(o opening) string { return o.Name }),
		workflow.On("add", workflow.From("live"), workflow.Stay, func(c *workflow.Call, d *tally, _ workflow.None) error {
			d.N++
			c.Emit("counter.grown", d)
			return nil
		}),
		workflow.On("end", workflow.From("live"), "done", func(*workflow.Call, *tally, workflow.None) error { return nil }),
	).Final("done")
}

// A sink receives the events of concurrent commands and of a late transaction once, in order.
func TestEngineWithLateTransaction(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := poolOf(t, url, nil)
	e, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{counter()}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		e.Stop(ctx)
	})
	to := &receiver{}
	n := newNode(t, url, func(c *relay.Config) { c.Feed = e.Read() }, quick("main", to))
	n.start(t)

	open := func(name string) transitions.Command {
		return transitions.Command{Workflow: "counter", Transition: "open", Key: "open " + name, Payload: fmt.Appendf(nil, `{"name":%q}`, name)}
	}
	add := func(name string, i int) transitions.Command {
		return transitions.Command{Workflow: "counter", Transition: "add", BusinessKey: name, Key: fmt.Sprint("add ", name, i)}
	}
	submit := func(c transitions.Command) {
		if r, err := e.Submit(t.Context(), c); err != nil || r.Refused() {
			t.Errorf("%+v, %v", r, err)
		}
	}
	submit(open("late"))
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }() // no-op after commit
	for i := range 2 {
		if _, err := e.SubmitTx(t.Context(), tx, add("late", i)); err != nil {
			t.Fatal(err)
		}
	}
	var work sync.WaitGroup
	for caller := range 8 {
		work.Go(func() {
			name := fmt.Sprint("c", caller)
			submit(open(name))
			for i := range 100 {
				submit(add(name, i))
			}
		})
	}
	work.Wait()
	const others = 1 + 8*101
	cursorReaches(t, pool, "main", "default", others)
	require.NoError(t, tx.Commit(t.Context()))
	submit(transitions.Command{Workflow: "counter", Transition: "end", BusinessKey: "late", Key: "end"})
	cursorReaches(t, pool, "main", "default", others+3)
	to.wants(t, 9+8*100*2+2*2+1)
	assert.Equal(t, 0, to.inOrder(t), "delivered twice")
	list := to.got()
	last := list[len(list)-1]
	assert.Truef(t, last.Transition == "end" && last.Position == others+3, "the last one is %+v", last)
}

// Tenants are served concurrently; none waits for the backlog of another.
func TestManyTenantsAreServedFairly(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := poolOf(t, url, nil)
	exec(t, pool, `
INSERT INTO pawl.log SELECT 't' || t, CASE WHEN t <= 40 THEN 1000 ELSE 3 END FROM generate_series(1, 80) t;
INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
SELECT l.tenant, p, 'e', 0, 'w', md5((p % 10)::text)::uuid, p, 'x', 's', now() FROM pawl.log l, generate_series(1, l.head) p`)
	var mu sync.Mutex
	finished := map[string]int{} // deliveries before each tenant's last event
	total := 0
	to := &receiver{}
	to.fail = nil
	to.enter = func(_ context.Context, batch []transitions.Logged) {
		mu.Lock()
		defer mu.Unlock()
		for i := range batch {
			total++
			if batch[i].Position == 3 || batch[i].Position == 1000 {
				finished[batch[i].Tenant] = total
			}
		}
	}
	n := startNode(t, url, quick("main", to))
	for i := 1; i <= 80; i++ {
		head := int64(1000)
		if i > 40 {
			head = 3
		}
		cursorReaches(t, n.pool, "main", fmt.Sprint("t", i), head)
	}
	to.inOrder(t)
	late := 0 // tolerates delayed queries on a busy machine
	for i := 41; i <= 80; i++ {
		if at := finished[fmt.Sprint("t", i)]; at > total*3/4 {
			t.Logf("the short log of t%d was delivered as the %dth event of %d", i, at, total)
			late++
		}
	}
	assert.Truef(t, late <= 10, "%d of 40 short logs were delivered after most of the long ones", late)
}
