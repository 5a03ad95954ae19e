package inbox_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/inbox"
	"github.com/pawlhq/pawl/internal/testkit/testlog"
	"github.com/pawlhq/pawl/transitions"
)

// source adapts a function to Source.
type source func(ctx context.Context) error

func (s source) Run(ctx context.Context, _ func(context.Context, transitions.Message) error) error {
	return s(ctx)
}

func start(sources ...inbox.Source) *inbox.Runner {
	r := inbox.NewRunner(inbox.RunnerConfig{Sources: sources, Log: slog.New(slog.DiscardHandler), First: time.Millisecond,
		Max: 2 * time.Millisecond})
	r.Start()
	return r
}

func TestEndedSourceIsRestarted(t *testing.T) {
	t.Parallel()
	var failed, other atomic.Int32
	again := make(chan struct{})
	r := start(
		source(func(ctx context.Context) error {
			switch failed.Add(1) {
			case 1:
				panic("broken")
			case 2:
				return errors.New("no connection")
			case 3:
				return nil
			case 4:
				close(again)
			}
			<-ctx.Done()
			return ctx.Err()
		}),
		source(func(ctx context.Context) error {
			other.Add(1)
			<-ctx.Done()
			return nil
		}))
	<-again
	for range 2 {
		r.Stop(t.Context())
	}
	assert.Truef(t, failed.Load() == 4 && other.Load() == 1, "they ran %d and %d times", failed.Load(), other.Load())
}

func TestStopEndsDelay(t *testing.T) {
	t.Parallel()
	ran := make(chan struct{}, 1)
	r := inbox.NewRunner(inbox.RunnerConfig{Log: slog.New(slog.DiscardHandler), First: time.Hour, Max: time.Hour,
		Sources: []inbox.Source{source(func(context.Context) error { ran <- struct{}{}; return errors.New("no") })}})
	r.Stop(t.Context()) // no-op before Start
	r.Start()
	<-ran
	r.Stop(t.Context())
}

func TestStopAbandonsHangingSource(t *testing.T) {
	t.Parallel()
	running, release := make(chan struct{}), make(chan struct{})
	var log testlog.Log
	r := inbox.NewRunner(inbox.RunnerConfig{Log: slog.New(&log), Sources: []inbox.Source{
		source(func(ctx context.Context) error { <-ctx.Done(); return nil }),
		source(func(context.Context) error { close(running); <-release; return nil })}})
	r.Start()
	<-running
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Stop(ctx)
	assert.Equalf(t, 1, log.Count("abandoning a source that does not stop source=1 (inbox_test.source)"), "logged %q", log.List())
	close(release)
	r.Stop(t.Context())
}

// consuming returns a source that delivers one message.
type consuming chan error

func (c consuming) Run(ctx context.Context, consume func(context.Context, transitions.Message) error) error {
	c <- consume(ctx, transitions.Message{ID: "m-1"})
	<-ctx.Done()
	return nil
}

func TestPanicRedeliversMessage(t *testing.T) {
	t.Parallel()
	c := make(consuming, 1)
	r := inbox.NewRunner(inbox.RunnerConfig{Sources: []inbox.Source{c}, Log: slog.New(slog.DiscardHandler),
		Consume: func(context.Context, transitions.Message) error { panic("broken") }})
	r.Start()
	defer r.Stop(t.Context())
	assert.Error(t, <-c, "the source is told that it was consumed")
}
