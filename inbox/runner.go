// Package inbox receives messages from other systems: sources receive them, and a list holds those
// that could not be consumed.
//
// A message becomes a command (see transitions.Message), so idempotency keys make it take effect
// once and no table of messages is needed. Only dead messages have a row here: messages that were
// unreadable, matched nothing, were refused, or reuse the id of another message.
package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Source receives messages, for example from a stream of a broker.
type Source interface {
	// Run receives messages until ctx ends and calls consume, which is safe for concurrent use. It
	// returns after all calls of consume have returned. If consume returns nil, the message's
	// effect is committed or it is stored as a dead message: acknowledge it. After an error,
	// redeliver it later.
	//
	// If Run returns before ctx ends, it is called again after a delay.
	Run(ctx context.Context, consume func(context.Context, transitions.Message) error) error
}

// RunnerConfig configures a Runner.
type RunnerConfig struct {
	Sources []Source
	Consume func(context.Context, transitions.Message) error
	Log     *slog.Logger

	// First and Max bound the randomized delay before a source that returned is run again: up to
	// First, doubled after each return, up to Max. They default to 1 second and 1 minute. A source
	// that ran longer than Max starts with First again.
	First, Max time.Duration
}

// Runner runs each source in its own goroutine and restarts sources that fail or panic.
type Runner struct {
	config  RunnerConfig
	cancel  context.CancelFunc
	running []chan struct{} // closed when the source with this index has ended
}

// NewRunner returns a runner. Start starts the sources.
func NewRunner(c RunnerConfig) *Runner {
	c.First = cmp.Or(c.First, time.Second)
	c.Max = cmp.Or(c.Max, time.Minute)
	return &Runner{config: c}
}

// Start runs the sources until Stop. Call it once.
func (r *Runner) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	for i, s := range r.config.Sources {
		ended := make(chan struct{})
		r.running = append(r.running, ended)
		go func() {
			defer close(ended)
			r.keep(ctx, i, s)
		}()
	}
}

// Stop stops the sources and waits for them until ctx ends. Sources that are still running are
// logged and abandoned. It may be called twice, and without Start.
func (r *Runner) Stop(ctx context.Context) {
	if r.cancel == nil {
		return
	}
	r.cancel()
	for i, s := range r.config.Sources {
		select {
		case <-r.running[i]:
			continue
		case <-ctx.Done():
		}
		select { // prefer a stopped source
		case <-r.running[i]:
		default:
			r.config.Log.Error("inbox: abandoning a source that does not stop", "source", nameOf(i, s))
		}
	}
}

func nameOf(number int, s Source) string { return fmt.Sprintf("%d (%T)", number, s) }

func (r *Runner) keep(ctx context.Context, number int, s Source) {
	retry := workflow.Retry{First: r.config.First, Max: r.config.Max}
	for failures := 1; ; failures++ {
		begun := time.Now()
		err := r.run(ctx, s)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) > r.config.Max {
			failures = 1
		}
		r.config.Log.Error("inbox: a source ended; restarting it", "source", nameOf(number, s), "error", err)
		if !backoff.Wait(ctx, retry, failures) {
			return
		}
	}
}

func (r *Runner) run(ctx context.Context, s Source) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	if err := s.Run(ctx, r.consume); err != nil {
		return err
	}
	return errors.New("source returned without an error")
}

// consume recovers panics, which would end the process in the goroutine of a source.
func (r *Runner) consume(ctx context.Context, m transitions.Message) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
			r.config.Log.ErrorContext(ctx, "inbox: a message could not be consumed; retrying",
				"consumer", m.Consumer, "message", m.ID, "error", err)
		}
	}()
	return r.config.Consume(ctx, m)
}
