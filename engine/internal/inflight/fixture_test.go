package inflight

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/internal/testkit/testlog"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestMain(m *testing.M) { tables.Main(m) }

// patience bounds what should take no time at all, but may on a busy machine.
const patience = await.Patience

// text is data, payload and result of the workflow of these tests.
type text struct {
	Text string `json:"text,omitempty"`
}

type (
	activityOfText = workflow.Activity[text, text, text]
	work           = func(ctx context.Context, a *workflow.Attempt, asked string) (string, error)
)

// job is a workflow whose activity "run" does the work, and which a timer could
// end.
func job(t testing.TB, do work, options ...func(*activityOfText)) *workflow.Workflow {
	t.Helper()
	nothing := func(*workflow.Call, *text, text) error { return nil }
	run := workflow.Do("run", workflow.From("ready"), "running", "done",
		func(ctx context.Context, a *workflow.Attempt, _, p text) (text, error) {
			result, err := do(ctx, a, p.Text)
			return text{result}, err
		}, nothing).OrElse("failed", func(*workflow.Call, *text, workflow.Failure) error { return nil })
	for _, o := range options {
		o(run)
	}
	w, err := workflow.Define("job", 1,
		workflow.Start("begin", "ready", nothing), run,
		workflow.On("expire", workflow.From("ready", "running"), "expired", nothing),
	).Final("done", "failed", "expired").Build()
	require.NoError(t, err)
	return w
}

// at once is work that has nothing to do.
func atOnce(context.Context, *workflow.Attempt, string) (string, error) { return "ok", nil }

// node is a runner with a pipeline that does no more than what the runner sees
// of the real one: it ends the command if the attempt still holds it.
type node struct {
	*Runner
	name  string
	pool  *pgxpool.Pool
	asked *pgtest.Queries
	log   *testlog.Log

	mu      sync.Mutex
	submits []*decide.Prepared // that ended their command
	changed []transitions.Ref
	hints   int
	refuse  func(p *decide.Prepared) error // what Continue answers instead; nil: nothing
	skew    time.Duration                  // of the engine's clock
}

// newNode makes a runner that is not started. change, where given, edits its
// configuration.
func newNode(t testing.TB, pool *pgxpool.Pool, w *workflow.Workflow, change ...func(*Config)) *node {
	t.Helper()
	n := &node{name: fmt.Sprintf("node-%s", uuid.NewString()[:8]), asked: &pgtest.Queries{}, log: &testlog.Log{}}
	config := pool.Config().Copy()
	config.ConnConfig.Tracer = n.asked
	config.MaxConns = 12
	var err error
	n.pool, err = pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(n.pool.Close)
	c := Config{
		Pool: n.pool, Callers: n.pool, Workflows: []string{w.Name}, In: schema.For(schema.Default), Node: n.name,
		Definitions: known{w}, Watchers: n, Paused: func([][2]string, time.Time) {},
		Hint: func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.hints++
		},
		Clock: clock{now: func() time.Time {
			n.mu.Lock()
			defer n.mu.Unlock()
			return time.Now().Add(n.skew)
		}},
		Log: slog.New(n.log), Workers: 20, Lease: 30 * time.Second, Every: lookEvery,
	}
	for _, f := range change {
		f(&c)
	}
	n.Runner = New(c)
	n.stop.grace, n.lockWait, n.poller.contact.wait = patience, patience, 0
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		n.Stop(ctx)
	})
	return n
}

// heldAsked is in the question which leases a node has.
const heldAsked = "SELECT x.created_at FROM pawl.command x"

// lookEvery is how often these nodes look for work without a reason to.
const lookEvery = time.Second

// seldom has a node look, after its first time, only for a reason.
func seldom(c *Config) { c.Every = time.Hour }

// startAfterLook starts a node, and returns when its first look has found nothing.
func startAfterLook(t testing.TB, pool *pgxpool.Pool, w *workflow.Workflow, change ...func(*Config)) *node {
	t.Helper()
	looked := make(chan struct{})
	var once sync.Once
	n := startNode(t, pool, w, append(change, func(c *Config) {
		c.Clock = clock{c.Clock.Now, func(time.Time, time.Time, time.Time) { once.Do(func() { close(looked) }) }}
	})...)
	await.Receive(t, "the first look is over", looked)
	return n
}

// clock goes as a test says, and tells it what polls have seen of the database's.
type clock struct {
	now  func() time.Time
	seen func(theirs, sent, received time.Time) // nil: nobody wants to know
}

func (c clock) Now() time.Time { return c.now() }

func (c clock) Set(theirs, sent, received time.Time) {
	if c.seen != nil {
		c.seen(theirs, sent, received)
	}
}

// known are the definitions of a node that knows one workflow.
type known struct{ w *workflow.Workflow }

func (k known) Versions(name string) []*workflow.Workflow {
	if name == k.w.Name {
		return []*workflow.Workflow{k.w}
	}
	return nil
}

func (known) Horizons(string) workflow.Horizons { return workflow.Horizons{}.Resolve(24 * time.Hour) }

// still is a clock that goes only when it is told to.
type still struct{ at atomic.Int64 }

func newStill() *still {
	s := &still{}
	s.at.Store(time.Now().UnixMicro())
	return s
}

func (s *still) now() time.Time       { return time.UnixMicro(s.at.Load()) }
func (s *still) skip(d time.Duration) { s.at.Add(d.Microseconds()) }
func (s *still) set(c *Config)        { c.Clock = clock{now: s.now} }

func startNode(t testing.TB, pool *pgxpool.Pool, w *workflow.Workflow, change ...func(*Config)) *node {
	t.Helper()
	n := newNode(t, pool, w, change...)
	n.Start()
	return n
}

func workers(n int) func(*Config)         { return func(c *Config) { c.Workers = n } }
func lease(d time.Duration) func(*Config) { return func(c *Config) { c.Lease = d } }

// Start starts the runner, with the node for its pipeline.
func (n *node) Start() { n.Runner.Start(n) }

// Ended implements Watchers.
func (n *node) Ended(transitions.Ref, transitions.Receipt) {}

// Changed implements Watchers.
func (n *node) Changed(refs []transitions.Ref) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changed = append(n.changed, refs...)
}

// Continue implements Pipeline.
func (n *node) Continue(ctx context.Context, p *decide.Prepared) (transitions.Receipt, error) {
	n.mu.Lock()
	refuse := n.refuse
	n.mu.Unlock()
	if refuse != nil {
		if err := refuse(p); err != nil {
			return transitions.Receipt{}, err
		}
	}
	status, code := transitions.Succeeded, 200
	if o := p.Resumed.Outcome; o != nil && o.Failure != nil {
		status, code = transitions.FailedFinal, 409
	}
	done, err := n.pool.Exec(ctx, `UPDATE pawl.command SET status = $5, code = $6, body = '{}', finished_at = now(), expires_at = now(),
		phase = NULL, run_at = NULL, request = NULL, locked_until = NULL, revision = revision + 1
		WHERE tenant = $1 AND scope = $2 AND key = $3 AND attempt = $4 AND status = 'processing'`,
		p.Tenant, p.Scope, p.Key, p.Resumed.Attempt, status, code)
	if err != nil {
		return transitions.Receipt{}, &workflow.Error{Code: workflow.Unavailable, Message: "no", Cause: err}
	}
	if done.RowsAffected() == 0 {
		return transitions.Receipt{}, workflow.Errorf(workflow.LeaseLost, "another attempt holds it")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.submits = append(n.submits, p)
	return transitions.Receipt{Status: code}, nil
}

// ended are the commands that this node has ended, in order.
func (n *node) ended() []*decide.Prepared {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.submits)
}

// endedSoFar is how many commands these nodes have ended.
func endedSoFar(nodes ...*node) (count int) {
	for _, n := range nodes {
		n.mu.Lock()
		count += len(n.submits)
		n.mu.Unlock()
	}
	return count
}

// atRest waits until the node's attempts are over, and counted.
func (n *node) atRest(t testing.TB) {
	t.Helper()
	eventually(t, "no worker is busy", func() bool { return n.Stats().Busy == 0 })
}

// failure is how the only command that this node has ended has failed.
func (n *node) failure(t testing.TB) workflow.Failure {
	t.Helper()
	eventually(t, "the command ends", func() bool { return len(n.ended()) > 0 })
	list := n.ended()
	require.Len(t, list, 1, "commands have ended")
	require.Truef(t, list[0].Resumed.Outcome != nil && list[0].Resumed.Outcome.Failure != nil,
		"the command has not failed: %+v", list[0].Resumed.Outcome)
	return *list[0].Resumed.Outcome.Failure
}

// stops reports whether Stop has begun.
func (n *node) stops() bool {
	n.Runner.mu.Lock()
	defer n.Runner.mu.Unlock()
	return n.Runner.ended
}

func (n *node) set(change func(*node)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

var eventually = await.Eventually
