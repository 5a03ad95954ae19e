package console

import (
	"cmp"
	"fmt"

	"slices"
	"time"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// why is a reason why an instance does not move.
type why struct {
	Kind string // for tests and the style
	Text string
	When time.Time // of its end or its beginning
	Said string    // message of an operator or an activity
	Link string    // address of the remedy
	Do   string    // label of the link
}

// The kinds of reasons.
const (
	whyUnknown    = "unknown"    // this node does not know the workflow
	whyPaused     = "paused"     // the instance, or its workflow
	whyStuck      = "stuck"      // a command waits for an operator
	whyStuckChild = "stuckchild" // a command of a child waits for an operator
	whyDeferred   = "deferred"   // a child has completed, but this state does not accept that
	whyWaits      = "waits"      // a command waits for a worker, or for its time
	whyWorks      = "works"      // an attempt is running
	whyFails      = "fails"      // an attempt has failed and will be repeated
	whyLost       = "lost"       // the lease has expired
	whyTimer      = "timer"      // a timer
	whyChild      = "child"      // the completion of a child
	whyScheduled  = "scheduled"  // a scheduled command
	whyCommand    = "command"    // a command is needed
	whyRefused    = "refused"    // a command is needed, but this user cannot submit one
)

// reasons explains the current state of an open instance, the most urgent reason first.
func (v *visit) reasons(page *instancePage) error {
	if !page.Open {
		return nil
	}
	if err := v.pauses(page); err != nil {
		return err
	}
	for _, s := range page.Stuck {
		page.add(why{Kind: whyStuck, Text: "a command waits for an operator: " + s.Message, When: s.Since,
			Link: v.At("stuck") + query("instance", page.ID), Do: "settle it"})
	}
	for _, c := range page.StuckChildren[:min(len(page.StuckChildren), 5)] {
		page.add(why{Kind: whyStuckChild, Text: fmt.Sprintf("a child is stuck, %s %s: %s", c.Workflow, cmp.Or(c.BusinessKey, c.Instance.String()),
			c.Message), When: c.Since, Link: v.At("instances", c.Instance.String()), Do: "show it"})
	}
	for _, c := range page.Deferred[:min(len(page.Deferred), 5)] {
		page.add(why{Kind: whyDeferred, Text: fmt.Sprintf("a child has completed, but %q is not possible now", c.End),
			Link: v.At("instances", c.Child.String()), Do: "show it"})
	}
	if page.Flight != nil && page.Flight.Stuck == "" {
		page.add(flightReason(page.Flight, time.Now()))
	}
	for _, t := range page.Timers[:min(len(page.Timers), 1)] {
		page.add(why{Kind: whyTimer, When: t.Due, Text: fmt.Sprintf("the timer %q will submit %q", t.Name, t.Transition)})
	}
	for _, s := range page.Scheduled[:min(len(page.Scheduled), 1)] {
		page.add(why{Kind: whyScheduled, When: s.Due, Text: fmt.Sprintf("%s has scheduled %q", s.Actor, s.Transition)})
	}
	if c := page.awaitedChild(); c != nil {
		text := fmt.Sprintf("the completion of a child submits %q: %s is in %q", c.End, c.Workflow, c.State)
		page.add(why{Kind: whyChild, Text: text, When: c.UpdatedAt, Link: v.At("instances", c.ID.String()), Do: "show it"})
	}
	page.add(v.commandReason(page))
	return nil
}

// awaitedChild returns a child whose completion moves the instance, or nil.
func (p *instancePage) awaitedChild() *wire.Child {
	if p.Children == nil {
		return nil
	}
	i := slices.IndexFunc(p.Children.Children, func(c wire.Child) bool { return c.Open && c.End != "" })
	if i < 0 {
		return nil
	}
	return &p.Children.Children[i]
}

func (p *instancePage) add(w why) {
	if w.Kind != "" {
		p.Why = append(p.Why, w)
	}
}

// pauses adds the pause of the instance, and that of its workflow if the user may read it.
func (v *visit) pauses(page *instancePage) error {
	id := page.ID.String()
	if page.Paused {
		w := why{Kind: whyPaused, Text: "the instance is paused"}
		if v.May("operate", page.Workflow, id, "") {
			w.Link, w.Do = v.At("instances", id, "resume"), "resume it"
		}
		i := slices.IndexFunc(page.Timeline, func(m step) bool { return m.Transition == "pawl.paused" })
		if i >= 0 {
			w.When, w.Said = page.Timeline[i].At, page.Timeline[i].Actor+": "+page.Timeline[i].Reason
		}
		page.add(w)
	}
	paused, err := v.pausedWorkflows()
	if p, is := paused[page.Workflow]; is {
		page.add(why{Kind: whyPaused, Text: "the workflow is paused", When: p.At, Said: p.Actor + ": " + p.Reason,
			Link: v.At("workflows", p.Workflow, "resume"), Do: "resume it"})
	}
	return err
}

// late is the delay after which due work counts as late. Nodes claim due work within two seconds.
const late = 10 * time.Second

// flightReason describes the state of the command in flight.
func flightReason(s *wire.CommandStatus, now time.Time) why {
	said := func(kind string, when time.Time, format string, args ...any) why {
		text := fmt.Sprintf("%q is in flight: ", s.Transition) + fmt.Sprintf(format, args...)
		if s.CancelledBy != "" {
			text += "; " + s.CancelledBy + " has requested its cancellation"
		}
		return why{Kind: kind, Text: text, When: when, Said: s.Failure}
	}
	lost := !s.LockedUntil.IsZero() && s.LockedUntil.Before(now)
	switch {
	case s.Status == transitions.Processing && lost:
		return said(whyLost, s.LockedUntil, "the lease of attempt %d by %s has expired; another node takes it over",
			s.Failures+1, cmp.Or(s.ClaimedBy, "a node"))
	case s.Status == transitions.Processing:
		return said(whyWorks, s.LockedUntil, "attempt %d is running, with a lease of %s that is renewed until it ends", s.Failures+1,
			cmp.Or(s.ClaimedBy, "a node"))
	case s.Status == transitions.FailedRetryable:
		return said(whyFails, s.RunAt, "attempt %d has failed, %s in total; the next one starts then", s.Failures,
			plural(s.Failures, "failure", "failures"))
	case s.Status == transitions.Pending && s.RunAt.Add(late).Before(now):
		return said(whyWaits, s.RunAt, "it has been due since then: no node with its workflow and version has a free worker, "+
			"its activity is at its limit, or it is paused")
	case s.Status == transitions.Pending:
		return said(whyWaits, s.RunAt, "it waits for its time, or for a worker")
	}
	return why{}
}

// commandReason explains that a command is needed, if no other event moves the instance.
func (v *visit) commandReason(page *instancePage) why {
	var names []string
	for _, o := range page.Options {
		if o.Allowed {
			names = append(names, o.Transition)
		}
	}
	switch {
	case page.Unknown:
		return why{Kind: whyUnknown, Text: fmt.Sprintf("this node does not know version %d of the workflow %q: start one that does",
			page.Definition, page.Workflow)}
	case len(names) > 0 && page.InFlight == nil:
		return why{Kind: whyCommand, Text: "a command is needed; you can submit: " + join(names, ", ")}
	case len(page.Why) > 0:
		return why{}
	case slices.ContainsFunc(page.Options, func(o option) bool { return o.Here }):
		return why{Kind: whyRefused, Text: "a command of another user is needed, or something has to change first: see the reasons below"}
	}
	return why{Kind: whyRefused, Text: "no transition leads out of this state for a caller: it waits for the completion of a child, or for a message"}
}

// leaves reports whether a transition is possible in the state, for any actor.
func leaves(o wire.Option) bool {
	return !slices.ContainsFunc(o.Reasons, func(r wire.WhyNot) bool { return r.Code == workflow.IllegalTransition })
}
