package inflight

import (
	"context"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// outcomeRetry is the delay between two attempts to commit an outcome.
var outcomeRetry = workflow.Retry{First: 50 * time.Millisecond, Max: 5 * time.Second}

// submitOutcome submits the outcome of an attempt to the pipeline. It retries while the lease is held: only this node knows what the
// attempt did.
func (r *Runner) submitOutcome(ctx context.Context, f *flight, o decide.Outcome) decide.Verdict {
	p, err := f.Ending(o)
	if err != nil {
		return r.undecidable(f, err)
	}
	traced(ctx, p)
	r.setSubmitted(f)
	for try := 1; ; try++ {
		_, err := r.pipeline.Continue(ctx, p)
		code := workflow.CodeOf(err)
		switch {
		case err == nil:
			r.stats.count(func(s *Stats) { s.ended(f.Phase, o.Failure) })
			return decide.Verdict{}
		case code == workflow.LeaseLost:
			r.lost(f)
			return decide.Verdict{}
		case code == workflow.NotOnThisNode && r.version(f) == nil:
			return f.NotHere() // it was cancelled before it was begun: nothing is lost
		case code == workflow.NotOnThisNode:
			r.config.Log.Warn("what a command came to cannot be stored by this node's build; another one is to", f.attrs("error", err)...)
			return f.HandOver(o, err)
		case !decide.IsTransient(code):
			return r.undecidable(f, err)
		}
		// If this node stops meanwhile, the lease expires, and the next holder determines the outcome.
		if !backoff.Wait(ctx, outcomeRetry, try) || !r.holds(f) {
			return decide.Verdict{}
		}
	}
}

// submitDue submits a scheduled command that is due, or the end of one that was cancelled before or expired without a worker.
func (r *Runner) submitDue(ctx context.Context, f *flight) decide.Verdict {
	if v, decided := f.BeforeDue(r.config.Definitions.Horizons(f.Workflow).Replay, r.config.Clock.Now()); decided {
		if v.Outcome == nil {
			return v
		}
		return r.submitOutcome(ctx, f, *v.Outcome)
	}
	versions := r.config.Definitions.Versions(f.Workflow)
	if len(versions) == 0 {
		return f.NotHere()
	}
	p, err := f.Due(versions[0], versions[1:]...)
	if err == nil && r.config.Recheck != nil && p.Proof != "" && !strings.HasPrefix(p.Scope, transitions.Reserved) {
		err = r.config.Recheck(ctx, &p.Command)
	}
	if refusal, is := err.(*workflow.Error); is && refusal.Code == workflow.CredentialEnded {
		r.config.Log.Warn("a scheduled command is refused: its credential is no longer valid",
			f.attrs("actor", f.Actor, "proof", p.Proof, "reason", refusal.Message)...)
		return r.submitOutcome(ctx, f, f.Unallowed(refusal.Message))
	}
	if err == nil {
		traced(ctx, p)
		r.setSubmitted(f)
		_, err = r.pipeline.Continue(ctx, p)
	}
	switch v := f.AfterDue(err); {
	case err == nil:
		r.stats.count(func(s *Stats) { s.Decided++ })
		return v
	case workflow.CodeOf(err) == workflow.LeaseLost:
		r.lost(f)
		return v
	case v.Back.Stuck != "":
		return r.undecidable(f, err)
	default:
		return v
	}
}

// setSubmitted keeps the lease extended during the commit. The commit then decides whether the lease was still held.
func (r *Runner) setSubmitted(f *flight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.submitted = true
}

// holds reports whether the command is still this flight's.
func (r *Runner) holds(f *flight) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[f.Ref] == f
}

// lost handles an attempt that was replaced by another, or whose command ended elsewhere. A timer that is disarmed while it fires is a
// normal case.
func (r *Runner) lost(f *flight) {
	r.mu.Lock()
	held, unbegun := r.held[f.Ref] == f, f.begin != nil
	if held {
		delete(r.held, f.Ref)
		f.begin = nil
	}
	r.mu.Unlock()
	if !held {
		return
	}
	f.stop(decide.ErrLost)
	if unbegun {
		r.finish(f)
	}
	r.stats.count(func(s *Stats) { s.Lost++ })
	tell := r.config.Log.Warn
	if f.Phase == transitions.Scheduled {
		tell = r.config.Log.Debug
	}
	tell("the lease of a command is gone: another attempt has begun, or the command has ended", f.attrs()...)
}
