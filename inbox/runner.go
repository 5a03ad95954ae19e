package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/pause"
	"github.com/pawlhq/pawl/transitions"
)

// RunnerConfig is what a Runner needs; the waits may be zero.
type RunnerConfig struct {
	Sources []Source
	Consume func(context.Context, transitions.Message) error
	Log     *slog.Logger

	// How long a source that has ended waits before it is run again: up to First,
	// twice as long after each further end, at most Max. Default 1 s and 1 min. A
	// source that has run for longer than Max begins with First again.
	First, Max time.Duration
}

// Runner runs sources, each in a goroutine of its own, and runs one again that
// has failed or panicked.
type Runner struct {
	config  RunnerConfig
	cancel  context.CancelFunc
	running []chan struct{} // closed when the source of this number has ended
}

// NewRunner starts nothing.
func NewRunner(c RunnerConfig) *Runner {
	c.First = cmp.Or(c.First, time.Second)
	c.Max = cmp.Or(c.Max, time.Minute)
	return &Runner{config: c}
}

// Start runs the sources until Stop. It is called once.
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

// Stop ends the sources and returns when they have, or when ctx ends first: those
// that do not obey are left behind, and the log names them. It may be called twice, and without Start.
func (r *Runner) Stop(ctx context.Context) {
	if r.cancel == nil {
		return
	}
	r.cancel()
	for i, s := range r.config.Sources {
		if !hasEnded(ctx, r.running[i]) {
			r.config.Log.Error("inbox: a source does not end, and is left behind", "source", nameOf(i, s))
		}
	}
}

// hasEnded waits for the end until ctx is done.
func hasEnded(ctx context.Context, ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

// nameOf is what the log calls a source.
func nameOf(number int, s Source) string { return fmt.Sprintf("%d (%T)", number, s) }

// keep runs a source again and again.
func (r *Runner) keep(ctx context.Context, number int, s Source) {
	wait := r.config.First
	for {
		begun := time.Now()
		err := r.run(ctx, s)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) > r.config.Max {
			wait = r.config.First
		}
		r.config.Log.Error("inbox: a source has ended; it is run again", "source", nameOf(number, s), "error", err)
		if !pause.For(ctx, rand.N(wait)+time.Millisecond) {
			return
		}
		wait = min(2*wait, r.config.Max)
	}
}

// run runs a source once.
func (r *Runner) run(ctx context.Context, s Source) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	if err := s.Run(ctx, r.consume); err != nil {
		return err
	}
	return errors.New("it returned without an error")
}

// consume is for the goroutines of a source, where a panic would end the process.
func (r *Runner) consume(ctx context.Context, m transitions.Message) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
			r.config.Log.ErrorContext(ctx, "inbox: a message could not be consumed; it comes again",
				"consumer", m.Consumer, "message", m.ID, "error", err)
		}
	}()
	return r.config.Consume(ctx, m)
}
