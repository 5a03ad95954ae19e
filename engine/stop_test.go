package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

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
