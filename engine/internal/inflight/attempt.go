package inflight

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/workflow"
)

// attempt runs the activity of a command, or its undo, once.
func (r *Runner) attempt(ctx context.Context, f *flight) decide.Verdict {
	w := r.version(f)
	if w == nil {
		return f.NotHere()
	}
	step := f.Activity(w)
	if step == nil {
		return f.Left()
	}
	work := step.Work
	if v, decided := f.Before(work, r.config.Definitions.Horizons(f.Workflow).Replay, r.config.Clock.Now()); decided {
		return v
	}
	asked, err := f.Asked()
	if err != nil {
		return r.undecidable(f, err)
	}
	key, err := f.EffectKey()
	if err != nil {
		return r.undecidable(f, err)
	}
	r.mu.Lock()
	f.deadline = time.Now().Add(work.Timeout)
	r.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, work.Timeout, decide.ErrTimeout)
	defer cancel()
	a := workflow.NewAttempt(workflow.Attempt{Key: key, Number: f.Attempt, Tenant: f.Tenant, Instance: f.Instance, Actor: f.Actor},
		func(progress []byte) { r.report(f, progress) })
	begun := time.Now()
	t := f.Try(work, decide.Code{
		Do: func() ([]byte, error) {
			result, err := work.Do(ctx, a, f.Data, asked.Payload)
			return result, r.logUnencodable(f, err)
		},
		Check: func() ([]byte, bool, error) {
			result, happened, err := work.Check(ctx, a, f.Data, asked.Payload)
			return result, happened, r.logUnencodable(f, err)
		},
		Undo: func() error { return work.Undo(ctx, a, f.Data, asked.Payload, asked.Result) },
	}, func(value any, stack []byte) {
		r.config.Log.Error("an activity panicked", f.attrs("panic", value, "stack", string(stack))...)
	})
	took := time.Since(begun)
	t.Cause = context.Cause(ctx)
	v := f.After(work, t)
	r.durations.observe(f, outcomeOfAttempt(f, t, v), took)
	return v
}

// logUnencodable logs why a result cannot be encoded, and returns err. The caller of the command does not see the reason.
func (r *Runner) logUnencodable(f *flight, err error) error {
	if errors.Is(err, workflow.ErrResult) {
		r.config.Log.Error("it has happened, but its result cannot be encoded", f.attrs("error", err)...)
	}
	return err
}

// report takes progress to be stored soon; with the next heartbeat, at the latest.
func (r *Runner) report(f *flight, progress []byte) {
	if len(progress) > maxProgress {
		r.config.Log.Warn("a report of progress is too long and was dropped", f.attrs("bytes", len(progress), "most", maxProgress)...)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[f.Ref] != f {
		return
	}
	if f.progress == nil {
		r.keeper.reported = append(r.keeper.reported, f)
	}
	f.progress = progress
	if r.keeper.reportAt.IsZero() {
		r.keeper.reportAt = time.Now().Add(max(reportGap, reportShare*r.keeper.took))
		poke(r.keeper.woken)
	}
}

// undecidable gives a command back that cannot be decided as it is.
func (r *Runner) undecidable(f *flight, err error) decide.Verdict {
	r.config.Log.Error("a command in flight cannot be decided", f.attrs("error", err)...)
	return decide.Undecidable(err)
}
