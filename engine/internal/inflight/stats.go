package inflight

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// counters count one thing at a time, so that their numbers belong together.
type counters struct {
	mu sync.Mutex
	Stats
}

func (c *counters) count(what func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what(&c.Stats)
}

// ended counts an outcome that is committed.
func (s *Stats) ended(phase transitions.Phase, failure *workflow.Failure) {
	switch {
	case failure == nil && phase == transitions.Undoing:
		s.Undone++
	case failure == nil:
		s.Succeeded++
	case failure.Kind == workflow.FailureCancelled:
		s.Cancelled++
	case failure.Kind == workflow.FailureAbandoned:
		s.Abandoned++
	default:
		s.Failed++
	}
}

// givenBack counts a command that is on its way back.
func (s *Stats) givenBack(b *decide.Back) {
	switch {
	case b.Stuck != "":
		s.Stuck++
	case b.Failed:
		s.Retried++
	default:
		s.Returned++
	}
}

// Stats are counters since the start, and what is under way.
type Stats struct {
	Polls      int64 // for due work
	Claimed    int64 // commands that were due, or whose lease had run out
	TakenOver  int64 // of those, the latter
	Decided    int64 // scheduled commands
	Succeeded  int64 // activities
	Failed     int64 // for good, by their own errors
	Cancelled  int64
	Abandoned  int64 // given up because their workers were lost too often
	Undone     int64 // effects
	Retried    int64 // attempts that failed and are to be repeated
	Stuck      int64 // commands that were left to an operator
	Returned   int64 // commands given back without an attempt that failed
	Parked     int64 // scheduled commands set aside until the end of a pause
	Heartbeats int64 // leases prolonged
	Lost       int64 // leases lost while an attempt was under way

	Busy int // workers, and scheduled commands being decided
	Held int // leases
}

// Stats reads the counters.
func (r *Runner) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	var now Stats
	r.stats.count(func(s *Stats) { now = *s })
	now.Busy, now.Held = r.slots.busy, len(r.held)
	return now
}

// DurationBounds are the upper bounds of the buckets of Durations, in seconds.
var DurationBounds = [...]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}

// Durations counts the attempts of an activity that had the same outcome, by how long they took. An attempt is a call of the
// activity's function, with the check before it, or of its undo. The wait for a worker and the commit are not part of it.
type Durations struct {
	Workflow string
	Activity string // the name of its transition
	// Outcome is succeeded, failed (permanently), retried (it is repeated), timed_out (its time limit ended it), cancelled,
	// stuck (left to an operator), interrupted (the node stopped or lost the lease), undone or undo_failed.
	Outcome string
	Count   uint64
	Sum     time.Duration
	Within  [len(DurationBounds)]uint64 // how many took at most DurationBounds[i] seconds
}

// durations collects the Durations of a node. There is one for each activity and outcome that occurs, so their number is bounded
// by the workflows.
type durations struct {
	mu   sync.Mutex
	list []*Durations
}

// observe counts an attempt.
func (d *durations) observe(f *flight, outcome string, took time.Duration) {
	if outcome == "" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.list, func(o *Durations) bool {
		return o.Workflow == f.Workflow && o.Activity == f.Transition && o.Outcome == outcome
	})
	if i < 0 {
		i = len(d.list)
		d.list = append(d.list, &Durations{Workflow: f.Workflow, Activity: f.Transition, Outcome: outcome})
	}
	o := d.list[i]
	o.Count++
	o.Sum += took
	for b, bound := range DurationBounds {
		if took.Seconds() <= bound {
			o.Within[b]++
		}
	}
}

// Durations returns the durations of this node's attempts since its start, by workflow, activity and outcome.
func (r *Runner) Durations() []Durations {
	r.durations.mu.Lock()
	defer r.durations.mu.Unlock()
	list := make([]Durations, 0, len(r.durations.list))
	for _, d := range r.durations.list {
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b Durations) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Activity, b.Activity), cmp.Compare(a.Outcome, b.Outcome))
	})
	return list
}

// outcomeOfAttempt names the outcome of an attempt for its duration. It is "" for an attempt that could not begin.
func outcomeOfAttempt(f *flight, t decide.Try, v decide.Verdict) string {
	undo := f.Phase == transitions.Undoing
	stopped := t.Cause == decide.ErrStopping || t.Cause == decide.ErrLapsed
	switch {
	case t.Err == nil && undo:
		return "undone"
	case t.Err == nil:
		return "succeeded"
	case errors.Is(t.Err, workflow.ErrUnreadable):
		return ""
	case v.Outcome == nil && v.Back == nil: // the lease was lost
		return "interrupted"
	case stopped && v.Back != nil && !v.Back.Failed && v.Back.Stuck == "":
		return "interrupted"
	case undo:
		return "undo_failed"
	case t.Cause == decide.ErrTimeout:
		return "timed_out"
	case v.Outcome != nil && v.Outcome.Failure.Kind == workflow.FailureCancelled:
		return "cancelled"
	case v.Outcome != nil:
		return "failed"
	case v.Back.Stuck != "":
		return "stuck"
	}
	return "retried"
}

// trace begins the span of a command's attempt, if the command was asked in a trace that is
// sampled. The span is in both contexts: that of the attempt, and that of the commit.
func (r *Runner) trace(ctx, attempt context.Context, f *flight) (context.Context, context.Context, tracing.Span) {
	if r.config.Tracer == nil {
		return ctx, attempt, tracing.None
	}
	asked, err := f.Asked()
	if err != nil || asked.Trace == "" { // an error is told to who needs what was asked
		return ctx, attempt, tracing.None
	}
	kind := tracing.Attempt
	switch f.Phase {
	case transitions.Undoing:
		kind = tracing.Undo
	case transitions.Scheduled:
		kind = tracing.Due
	}
	attempt, span := tracing.Start(attempt, r.config.Tracer, tracing.Step{Kind: kind, Parent: asked.Trace, Tenant: f.Tenant,
		Workflow: f.Workflow, Transition: f.Transition, Instance: f.Instance, Count: f.Attempt})
	return tracing.With(ctx, span), attempt, span
}

// traced sets the span of a continuing command.
func traced(ctx context.Context, p *decide.Prepared) {
	p.Trace = cmp.Or(tracing.SpanOf(ctx).Context(), p.Trace)
}

// outcomeOf returns the outcome for the span of an attempt: the failure with which the command ends or is released.
func outcomeOf(ending *decide.Outcome, back *decide.Back) tracing.Outcome {
	switch {
	case back != nil && back.Stuck != "":
		return tracing.Outcome{Error: back.Stuck}
	case back != nil && back.Failed:
		return tracing.Outcome{Error: string(back.Status)}
	case ending != nil && ending.Failure != nil:
		return tracing.Outcome{Error: string(ending.Failure.Kind)}
	}
	return tracing.Outcome{}
}
