package inflight

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

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
