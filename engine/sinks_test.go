package engine_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// receiver is a sink that keeps what it gets. refuse says which events fail, and
// how; nil: none.
type receiver struct {
	mu     sync.Mutex
	events []transitions.Event
	refuse func(*transitions.Event) *sink.Failure
}

// Deliver implements sink.Sink.
func (r *receiver) Deliver(ctx context.Context, events []transitions.Logged) []*sink.Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sink.InOrder(ctx, events, func(_ context.Context, e *transitions.Logged) *sink.Failure {
		if r.refuse != nil {
			if f := r.refuse(&e.Event); f != nil {
				return f
			}
		}
		r.events = append(r.events, e.Event)
		return nil
	})
}

// Close implements sink.Sink.
func (r *receiver) Close(context.Context) error { return nil }

func (r *receiver) got() []transitions.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// refuses changes which events fail.
func (r *receiver) refuses(f func(*transitions.Event) *sink.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = f
}

// sinks configures an engine with sinks.
func sinks(list ...relay.Sink) func(*engine.Config) {
	return func(c *engine.Config) { c.Sinks = list }
}

// standing is how a sink stands.
func standing(t testing.TB, e *engine.Engine, name string) inspect.SinkInfo {
	t.Helper()
	list, err := e.Admin().Sinks(t.Context(), "")
	require.NoError(t, err)
	i := slices.IndexFunc(list, func(s inspect.SinkInfo) bool { return s.Name == name })
	require.Truef(t, i >= 0, "there is no sink %q: %+v", name, list)
	return list[i]
}

// delivered waits until sinks have everything.
func delivered(t testing.TB, e *engine.Engine, names ...string) {
	t.Helper()
	for _, name := range names {
		eventually(t, name+" has everything", func() bool {
			s := standing(t, e, name)
			return s.Lag == 0 && s.Aside == 0
		})
	}
}

// Operations need no started engine, and reach the delivering node.
func TestSinkOperations_NotStarted(t *testing.T) {
	t.Parallel()
	pool := database(t)
	to := &receiver{}
	to.refuses(func(e *transitions.Event) *sink.Failure {
		if e.Transition == "pay" {
			return sink.Fail(sink.Permanent, nil, "no payments")
		}
		return nil
	})
	e := newEngine(t, pool, sinks(relay.Sink{Name: "main", To: to}))
	submit(t, e, applied("1", 100))
	submit(t, e, on("pay", "1", "p-1", 10, ""))
	submit(t, e, on("pay", "1", "p-2", 10, ""))
	delivered(t, e, "main")

	desk, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}})
	require.NoError(t, err)
	defer desk.Stop(t.Context())
	filter := inspect.DeadFilter{Sink: "main"}
	list, more, err := desk.Admin().DeadLetters(t.Context(), filter, inspect.DeadPage{Limit: 1})
	require.Truef(t, err == nil && more && len(list) == 1 && list[0].Position == 2 && list[0].Failure == "no payments",
		"%+v, %v, %v", list, more, err)
	cursors, more, err := desk.Admin().SinkCursors(t.Context(), inspect.CursorFilter{Sink: "main", Tenant: "default"})
	assert.Truef(t, err == nil && !more && len(cursors) == 1 && cursors[0].Position == 3, "%+v, %v, %v", cursors, more, err)
	to.refuses(nil)
	filter.Tenant, filter.Position = "default", 2
	n, err := desk.Admin().SkipDead(t.Context(), filter, "ann", "known")
	assert.Truef(t, n == 1 && err == nil, "%d, %v", n, err)
	n, err = desk.Admin().Redrive(t.Context(), inspect.DeadFilter{Sink: "main"}, "ann", "")
	assert.Truef(t, n == 1 && err == nil, "%d, %v", n, err)
	eventually(t, "the other is delivered", func() bool { return len(to.got()) == 2 })
	require.NoError(t, desk.Admin().PauseSink(t.Context(), "main", "ann", "closed"))
	eventually(t, "its node lets go of it", func() bool { return standing(t, desk, "main").Node == "" })
	require.NoError(t, desk.Admin().MoveSink(t.Context(), "main", "", 0, "ann", "once more"))
	require.NoError(t, desk.Admin().ResumeSink(t.Context(), "main"))
	eventually(t, "everything is delivered again", func() bool { return len(to.got()) == 5 })
	_, _, err = desk.Admin().DeadLetters(t.Context(), inspect.DeadFilter{Sink: "nothing"}, inspect.DeadPage{})
	wantCode(t, err, workflow.NotFound)
}

// A filter that matches no possible event is a configuration error, found before any event is skipped.
func TestAFilterOfASinkThatNothingCanPassIsRefused(t *testing.T) {
	t.Parallel()
	pool := database(t)
	with := func(f transitions.EventFilter) error {
		_, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)},
			Sinks: []relay.Sink{{Name: "hook", To: &receiver{}, Filter: f}}})
		return err
	}
	for want, f := range map[string]transitions.EventFilter{
		`filter of sink "hook": invalid_request: unknown workflow "lone"`: {Workflow: "lone"},
		`workflow "loan" declares no attribute "costumer"`:                {Workflow: "loan", Attributes: map[string]string{"costumer": "c"}},
		`no workflow declares an attribute "costumer"`:                    {Attributes: map[string]string{"customer": "c", "costumer": "c"}},
		`no workflow that is selected has a state "opened"`:               {States: []workflow.State{"open", "opened"}},
		`a filter by business key needs the workflow`:                     {BusinessKey: "L-1"},
		`the value of attribute "customer" is longer than 255 bytes`:      {Attributes: map[string]string{"customer": strings.Repeat("c", 256)}},
		`filter of sink "hook": a type or a state is empty`:               {Types: []string{""}},
	} {
		assert.ErrorContainsf(t, with(f), want, "%+v", f)
	}
	good := transitions.EventFilter{Workflow: "loan", BusinessKey: "L-1", Attributes: map[string]string{"customer": "c"},
		States: []workflow.State{"settled"}, Types: []string{"loan.pay", "whatever an action emits"}}
	assert.NoError(t, with(good))
}

// deafSource runs until it is released, whatever its context says.
type deafSource struct{ running, release chan struct{} }

func (s *deafSource) Run(context.Context, func(context.Context, transitions.Message) error) error {
	close(s.running)
	<-s.release
	return nil
}

// closing is a sink that notes whether there was time left when it was closed.
type closing struct {
	time context.Context
	left chan bool
}

func (c *closing) Deliver(context.Context, []transitions.Logged) []*sink.Failure { return nil }

func (c *closing) Close(context.Context) error {
	select {
	case c.left <- c.time.Err() == nil:
	default:
	}
	return nil
}

// A source that ignores its context uses only its share of the time.
func TestStop_HangingSource(t *testing.T) {
	t.Parallel()
	s := &deafSource{running: make(chan struct{}), release: make(chan struct{})}
	defer close(s.release)
	to := &closing{left: make(chan bool, 1)}
	e := newEngine(t, database(t), sinks(relay.Sink{Name: "hook", To: to}), func(c *engine.Config) { c.Sources = append(c.Sources, s) })
	await.Receive(t, "the source runs", s.running)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	to.time = ctx
	e.Stop(ctx)
	assert.True(t, await.Receive(t, "the sink is closed", to.left), "no time was left for the sinks")
}
