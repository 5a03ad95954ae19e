package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	Urgent bool `json:"urgent,omitzero"` // started by "urge"
}

type named struct {
	Name string `json:"name" validate:"required"`
}

// visits has an activity and receives messages. Version 2 adds a start and two transitions.
func visits(version int) workflow.Source {
	note := func(_ *workflow.Call, d *visit, _ named) error { d.Done++; return nil }
	key := func(n named) string { return n.Name }
	received := func(kind string) workflow.Mapping[named] {
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
		workflow.On("arrive", workflow.From("open"), workflow.Stay, note).Receive("desk", received("arrived")),
		workflow.On("end", workflow.From("open"), "ended", note),
	}
	if version > 1 {
		parts = append(parts, workflow.Start("urge", "open", func(_ *workflow.Call, d *visit, _ named) error {
			d.Done, d.Urgent = 1, true
			return nil
		}).
			BusinessKey(key),
			workflow.On("rate", workflow.From("open"), workflow.Stay, note),
			workflow.On("thank", workflow.From("open"), workflow.Stay, note).Receive("desk", received("thanked")))
	}
	return workflow.Define("visit", version, parts...).Final("ended")
}

// upgrade is a set of nodes that are replaced, and callers that use any of them.
type upgrade struct {
	t      *testing.T
	ctx    context.Context
	mu     sync.RWMutex
	nodes  []*engine.Engine
	second atomic.Bool  // callers may use features of the second version
	rounds atomic.Int64 // visits that have ended
	beyond atomic.Int64 // of these: with features of the second version
	over   atomic.Bool
}

// try executes do on any node until one succeeds. It reports false after another error than a retryable one.
func (u *upgrade) try(what string, do func(*engine.Engine) error) bool {
	for u.ctx.Err() == nil {
		u.mu.RLock()
		e := u.nodes[rand.IntN(len(u.nodes))]
		u.mu.RUnlock()
		err := do(e)
		if err == nil {
			return true
		}
		if !assert.Truef(u.t, workflow.CodeOf(err).Info().Retry, "%s: %v", what, err) {
			return false
		}
		await.Pass("the caller was told to retry", time.Millisecond)
	}
	return assert.Fail(u.t, "not in time", what)
}

func (u *upgrade) submit(c transitions.Command) bool {
	return u.try(c.Transition+" "+c.Key, func(e *engine.Engine) error {
		r, err := e.Submit(u.ctx, c)
		if err == nil && r.InFlight() {
			r, err = e.Await(u.ctx, transitions.Ref{Scope: r.Record.Scope, Key: r.Record.Key})
		}
		return errors.Join(err, r.Err())
	})
}

func (u *upgrade) send(kind, name string) bool {
	m := transitions.Message{Consumer: "desk", ID: kind + " " + name, Type: kind, Body: fmt.Appendf(nil, `{"name":%q}`, name)}
	return u.try(m.ID, func(e *engine.Engine) error {
		r, err := e.Consume(u.ctx, m)
		return errors.Join(err, r.Err())
	})
}

// visit executes all commands of a visit.
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

// awaitMore waits until n more visits have ended.
func (u *upgrade) awaitMore(counter *atomic.Int64, n int64) {
	enough := counter.Load() + n
	await.Eventually(u.t, "more visits have ended", func() bool { return counter.Load() >= enough || u.t.Failed() })
}

// Three nodes are upgraded from version 1 to 2 while callers use all of them: in two phases as documented, or in one, in which new nodes start
// instances of version 2 while old nodes serve.
func TestRollingUpgrade(t *testing.T) {
	for name, phases := range map[string]bool{"two phases": true, "one phase": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rollingUpgrade(t, 4, 12, phases)
		})
	}
}

// rollingUpgrade lets a number of visits end between two steps. No caller depends on the end of a lease.
func rollingUpgrade(t *testing.T, callers int, between int64, phases bool) {
	t.Helper()
	pool := database(t)
	begin := func(versions ...int) *engine.Engine {
		return start(t, pool, func(c *engine.Config) {
			c.InFlight.Lease = time.Hour
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
	u.awaitMore(&u.rounds, between)
	if phases {
		require.NoError(t, u.nodes[0].Admin().BeginVersion(u.ctx, "visit", 1, "ann"))
	}
	for i := range u.nodes {
		stop(t, u.nodes[i]) // callers still use it
		e := begin(1, 2)
		u.mu.Lock()
		u.nodes[i] = e
		u.mu.Unlock()
		if !phases {
			u.second.Store(true)
		}
		u.awaitMore(&u.rounds, between)
	}
	if phases {
		assert.Zero(t, number(t, pool, "SELECT count(*) FROM pawl.instance WHERE definition = 2"), "instances of version 2 before the second phase")
		require.NoError(t, u.nodes[1].Admin().BeginVersion(u.ctx, "visit", 0, "ann"))
		u.second.Store(true)
	}
	u.awaitMore(&u.beyond, between)
	end()
	assert.Positive(t, u.beyond.Load(), "visits with features of version 2")
	assert.Zero(t, number(t, pool, "SELECT count(*) FROM pawl.instance WHERE state <> 'ended'"), "visits that have not ended")
	n := number(t, pool,
		"SELECT count(*) FROM pawl.instance WHERE data->>'done' <> CASE data->>'urgent' WHEN 'true' THEN '6' ELSE '4' END")
	assert.Zero(t, n, "visits with lost or repeated effects")
	dead, _, err := u.nodes[0].Admin().DeadMessages(bounded(t), inspect.DeadMessageFilter{})
	require.NoError(t, err)
	assert.Empty(t, dead)
	wantSound(t, u.nodes[0], pool)
}
