package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type visit struct {
	Done   int  `json:"done"`
	Urgent bool `json:"urgent,omitzero"` // it began in the second version's own way
}

type named struct {
	Name string `json:"name" validate:"required"`
}

// visits are a workflow that has work, and hears. From its second version on a visit can be rated, and begin in another way.
func visits(version int) workflow.Source {
	note := func(_ *workflow.Call, d *visit, _ named) error { d.Done++; return nil }
	key := func(n named) string { return n.Name }
	heard := func(kind string) workflow.Mapping[named] {
		return workflow.JSON(func(m workflow.Message, n named) (workflow.Address, named, error) {
			if m.Type != kind {
				return workflow.Address{}, n, workflow.ErrNotMine
			}
			return workflow.Address{BusinessKey: n.Name}, n, nil
		})
	}
	parts := []workflow.Part[visit]{
		workflow.Start("plan", "open", note).BusinessKey(key),
		workflow.Do("drive", workflow.From("open"), "driving", "open",
			func(context.Context, *workflow.Attempt, visit, named) (named, error) { return named{"there"}, nil }, note).
			OrElse("open", func(*workflow.Call, *visit, workflow.Failure) error { return nil }),
		workflow.On("arrive", workflow.From("open"), workflow.Stay, note).Receive("desk", heard("arrived")),
		workflow.On("end", workflow.From("open"), "ended", note),
	}
	if version > 1 {
		parts = append(parts, workflow.Start("urge", "open", func(_ *workflow.Call, d *visit, _ named) error {
			d.Done, d.Urgent = 1,
				true
			return nil
		}).
			BusinessKey(key),
			workflow.On("rate", workflow.From("open"), workflow.Stay, note),
			workflow.On("thank", workflow.From("open"), workflow.Stay, note).Receive("desk", heard("thanked")))
	}
	return workflow.Define("visit", version, parts...).Final("ended")
}

// upgrade is nodes that are replaced, and callers who ask any of them.
type upgrade struct {
	t       *testing.T
	ctx     context.Context
	mu      sync.RWMutex
	nodes   []*engine.Engine
	second  atomic.Bool  // callers may use what only the second version has
	rounds  atomic.Int64 // visits that have ended
	beyond  atomic.Int64 // of them: those that the second version alone can do
	again   atomic.Int64 // answers that said to try again
	longest atomic.Int64 // that somebody has waited for what he asked, in nanoseconds
	over    atomic.Bool
}

// ask asks any node until one does it.
func (u *upgrade) ask(what string, once func(*engine.Engine) error) bool {
	began := time.Now()
	for u.ctx.Err() == nil {
		u.mu.RLock()
		e := u.nodes[rand.IntN(len(u.nodes))]
		u.mu.RUnlock()
		err := once(e)
		switch {
		case err == nil:
			for took := int64(time.Since(began)); ; {
				if most := u.longest.Load(); took <= most || u.longest.CompareAndSwap(most, took) {
					return true
				}
			}
		case !workflow.CodeOf(err).Info().Retry:
			u.t.Errorf("%s: %v", what, err)
			return false
		}
		u.again.Add(1)
		await.Pass("the caller was told to come again", time.Millisecond)
	}
	u.t.Errorf("%s: not in time", what)
	return false
}

func (u *upgrade) submit(c transitions.Command) bool {
	return u.ask(c.Transition+" "+c.Key, func(e *engine.Engine) error {
		r, err := e.Submit(u.ctx, c)
		if err == nil && r.InFlight() {
			r, err = e.Await(u.ctx, transitions.Ref{Scope: r.Record.Scope, Key: r.Record.Key})
		}
		if err == nil {
			err = r.Err()
		}
		return err
	})
}

func (u *upgrade) send(kind, name string) bool {
	m := transitions.Message{Consumer: "desk", ID: kind + " " + name, Type: kind, Body: fmt.Appendf(nil, `{"name":%q}`, name)}
	return u.ask(m.ID, func(e *engine.Engine) error {
		r, err := e.Consume(u.ctx, m)
		if err == nil {
			err = r.Err()
		}
		return err
	})
}

// visit is all that is asked of one. With the second version it is more.
func (u *upgrade) visit(name string) bool {
	second := u.second.Load()
	begin := "plan"
	if second {
		begin = "urge"
	}
	do := func(transition string) bool {
		c := transitions.Command{Workflow: "visit", Transition: transition, BusinessKey: name, Key: transition + " " + name,
			Payload: fmt.Appendf(nil, `{"name":%q}`, name)}
		if transition == begin {
			c.BusinessKey = ""
		}
		return u.submit(c)
	}
	if !do(begin) || !do("drive") || !u.send("arrived", name) || second && (!do("rate") || !u.send("thanked", name)) || !do("end") {
		return false
	}
	if u.rounds.Add(1); second {
		u.beyond.Add(1)
	}
	return true
}

// more waits until so many more visits have ended.
func (u *upgrade) more(counter *atomic.Int64, n int64) {
	enough := counter.Load() + n
	await.Eventually(u.t, "more visits have ended", func() bool { return counter.Load() >= enough || u.t.Failed() })
}

// Three nodes are brought from the first version to the second as the documentation says, while callers ask all of them.
func TestRollingUpgrade_TwoPhases(t *testing.T) {
	t.Parallel()
	rollingUpgrade(t, 4, 12, true)
}

// The same without the first phase: new nodes begin the second version while old ones serve.
func TestRollingUpgrade_OnePhase(t *testing.T) {
	t.Parallel()
	rollingUpgrade(t, 4, 12, false)
}

// rollingUpgrade has so many callers, and so many visits end between two steps.
func rollingUpgrade(t *testing.T, callers int, between int64, phases bool) {
	t.Helper()
	const lease = time.Minute
	pool := database(t)
	begin := func(versions ...int) *engine.Engine {
		return start(t, pool, func(c *engine.Config) {
			c.InFlight.Lease = lease
			c.Workflows = nil
			for _, v := range versions {
				c.Workflows = append(c.Workflows, visits(v))
			}
		})
	}
	u := &upgrade{t: t, ctx: underLoad(t)}
	for range 3 {
		u.nodes = append(u.nodes, begin(1))
	}
	var work sync.WaitGroup
	for caller := range callers {
		work.Go(func() {
			for n := 0; !u.over.Load() && u.visit(fmt.Sprintf("%d-%d", caller, n)); n++ {
			}
		})
	}
	end := func() { u.over.Store(true); work.Wait() }
	defer end()
	u.more(&u.rounds, between)
	if phases {
		require.NoError(t, u.nodes[0].Admin().BeginVersion(u.ctx, "visit", 1, "ann"))
	}
	for i := range u.nodes {
		stop(t, u.nodes[i]) // callers go on to ask it
		e := begin(1, 2)
		u.mu.Lock()
		u.nodes[i] = e
		u.mu.Unlock()
		if !phases {
			u.second.Store(true)
		}
		u.more(&u.rounds, between)
	}
	n := number(t, pool, "SELECT count(*) FROM pawl.instance WHERE definition = 2")
	assert.Falsef(t, phases && n != 0, "%d instances began with version 2 before it was said", n)
	if phases {
		require.NoError(t, u.nodes[1].Admin().BeginVersion(u.ctx, "visit", 0, "ann"))
		u.second.Store(true)
	}
	u.more(&u.beyond, between)
	end()
	u.check(pool, lease)
}

// check looks at what has become of all.
func (u *upgrade) check(pool *pgxpool.Pool, lease time.Duration) {
	t, e := u.t, u.nodes[0]
	t.Logf("%d visits, %d of version 2 alone; %d answers said to try again; the longest wait was %s", u.rounds.Load(), u.beyond.Load(),
		u.again.Load(), time.Duration(u.longest.Load()))
	assert.NotEqual(t, int64(0), u.beyond.Load(), "nothing was done that version 2 alone can do")
	longest := time.Duration(u.longest.Load())
	assert.Truef(t, longest < lease, "somebody has waited for %s, and a lease is %s", longest, lease)
	assert.Equal(t, int64(0), number(t, pool, "SELECT count(*) FROM pawl.instance WHERE state <> 'ended'"), "visits have not ended")
	n := number(t, pool,
		"SELECT count(*) FROM pawl.instance WHERE data->>'done' <> CASE data->>'urgent' WHEN 'true' THEN '6' ELSE '4' END")
	assert.Equal(t, int64(0), n, "visits lack something that was done, or have it twice")
	dead, _, err := e.Admin().DeadMessages(bounded(t), inspect.DeadMessageFilter{})
	assert.Truef(t, err == nil && len(dead) == 0, "dead messages: %+v, %v", dead, err)
	wantSound(t, e, pool)
}
