package console

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// why is a reason for which an instance does not move.
type why struct {
	Kind string // one of a few words, for tests and for the style
	Text string
	When time.Time // when that ends by itself, or has begun
	Said string    // in somebody else's words
	Link string    // where it is mended
	Do   string    // what is done there
}

// The kinds of reasons.
const (
	whyUnknown    = "unknown"    // no node that is asked knows the workflow
	whyPaused     = "paused"     // the instance, or its workflow
	whyStuck      = "stuck"      // a command waits for an operator
	whyStuckChild = "stuckchild" // a command of a child waits for an operator
	whyDeferred   = "deferred"   // a child has ended, which this state does not take
	whyWaits      = "waits"      // a command waits for a worker, or for its time
	whyWorks      = "works"      // an attempt is under way
	whyFails      = "fails"      // an attempt has failed, and there will be another one
	whyLost       = "lost"       // whoever works on it is not heard of
	whyTimer      = "timer"      // a timer
	whyChild      = "child"      // the end of a child
	whyScheduled  = "scheduled"  // a command for later
	whyCommand    = "command"    // somebody has to send a command
	whyRefused    = "refused"    // nothing can be done with it, by this user
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
			Link: v.at("stuck") + "?" + url.Values{"instance": {page.ID.String()}}.Encode(), Do: "settle it"})
	}
	for _, c := range page.StuckChildren[:min(len(page.StuckChildren), 5)] {
		page.add(why{Kind: whyStuckChild, Text: fmt.Sprintf("a child is stuck, %s %s: %s", c.Workflow, cmp.Or(c.BusinessKey, c.Instance.String()),
			c.Message), When: c.Since, Link: v.at("instances", c.Instance.String()), Do: "look at it"})
	}
	for _, c := range page.Deferred[:min(len(page.Deferred), 5)] {
		page.add(why{Kind: whyDeferred, Text: fmt.Sprintf("a child has ended, but %q is not possible now", c.End),
			Link: v.at("instances", c.Child.String()), Do: "look at it"})
	}
	if page.Flight != nil && page.Flight.Stuck == "" {
		page.add(flightReason(page.Flight, time.Now()))
	}
	for _, t := range page.Timers[:min(len(page.Timers), 1)] {
		page.add(why{Kind: whyTimer, When: t.Due, Text: fmt.Sprintf("the timer %q will do %q", t.Name, t.Transition)})
	}
	for _, s := range page.Scheduled[:min(len(page.Scheduled), 1)] {
		page.add(why{Kind: whyScheduled, When: s.Due, Text: fmt.Sprintf("%s has asked for %q at a later time", s.Actor, s.Transition)})
	}
	if c := page.waitsForChild(); c != nil {
		text := fmt.Sprintf("the end of a child does %q: %s stands in %q", c.End, c.Workflow, c.State)
		page.add(why{Kind: whyChild, Text: text, When: c.UpdatedAt, Link: v.at("instances", c.ID.String()), Do: "look at it"})
	}
	page.add(v.commandReason(page))
	return nil
}

func (p *instancePage) add(w why) {
	if w.Kind != "" {
		p.Why = append(p.Why, w)
	}
}

// pauses adds the pause of the instance, and that of its workflow where the user may know of it.
func (v *visit) pauses(page *instancePage) error {
	id := page.ID.String()
	if page.Paused {
		w := why{Kind: whyPaused, Text: "the instance is paused: nothing new is begun on it"}
		if v.May("operate", page.Workflow, id, "") {
			w.Link, w.Do = v.at("instances", id, "resume"), "resume it"
		}
		i := slices.IndexFunc(page.Timeline, func(m moment) bool { return m.Transition == "pawl.paused" })
		if i >= 0 {
			w.When, w.Said = page.Timeline[i].At, page.Timeline[i].Actor+": "+page.Timeline[i].Reason
		}
		page.add(w)
	}
	if !v.can.May("operate", everything) {
		return nil
	}
	list, err := v.pausedFirst("1")
	for _, p := range list.Workflows {
		if p.Workflow == page.Workflow {
			page.add(why{Kind: whyPaused, Text: "the workflow is paused: nothing new is begun on any of its instances", When: p.At,
				Said: p.Actor + ": " + p.Reason, Link: v.at("workflows", p.Workflow, "resume"), Do: "resume it"})
		}
	}
	return err
}

// late is how long after its time something is late: a node that lives takes what is due within two seconds.
const late = 10 * time.Second

// flightReason tells how the command in flight stands.
func flightReason(s *api.CommandStatus, now time.Time) why {
	said := func(kind string, when time.Time, format string, args ...any) why {
		text := fmt.Sprintf("%q is in flight: ", s.Transition) + fmt.Sprintf(format, args...)
		if s.CancelledBy != "" {
			text += "; " + s.CancelledBy + " has asked it to stop"
		}
		return why{Kind: kind, Text: text, When: when, Said: s.Failure}
	}
	lost := !s.LockedUntil.IsZero() && s.LockedUntil.Before(now)
	switch {
	case s.Status == transitions.Processing && lost:
		return said(whyLost, s.LockedUntil, "%s is not heard of since its lease of attempt %d has run out; another node takes it over",
			holder(s, "whoever works on it"), s.Failures+1)
	case s.Status == transitions.Processing:
		return said(whyWorks, s.LockedUntil, "attempt %d is under way, under a lease of %s that is prolonged while that is heard of", s.Failures+1,
			holder(s, "a node"))
	case s.Status == transitions.FailedRetryable:
		return said(whyFails, s.RunAt, "attempt %d has failed, %s in all; the next one is begun then", s.Failures,
			plural(s.Failures, "failure", "failures"))
	case s.Status == transitions.Pending && s.RunAt.Add(late).Before(now):
		return said(whyWaits, s.RunAt, "it is due since then, and nobody takes it: no node that knows its workflow and version has a "+
			"worker free, its activity is at its limit, or it is paused")
	case s.Status == transitions.Pending:
		return said(whyWaits, s.RunAt, "it waits for its time, or for a worker")
	}
	return why{}
}

// holder names who has the lease, for who may know it.
func holder(s *api.CommandStatus, unknown string) string {
	if s.ClaimedBy == "" {
		return unknown
	}
	return s.ClaimedBy
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
		return why{Kind: whyCommand, Text: "somebody has to send a command; you can do: " + join(names, ", ")}
	case len(page.Why) > 0:
		return why{}
	case slices.ContainsFunc(page.Options, func(o option) bool { return o.Here }):
		return why{Kind: whyRefused, Text: "somebody else has to send a command, or something has to change first: see what refuses each below"}
	}
	return why{Kind: whyRefused, Text: "no transition leads out of this state for a caller: it waits for the end of a child, or for a message"}
}

// leaves reports whether a transition is possible in the state, for any actor.
func leaves(o api.Option) bool {
	return !slices.ContainsFunc(o.Reasons, func(r api.WhyNot) bool { return r.Code == workflow.IllegalTransition })
}
