package ops

import (
	"fmt"
	"io"
	"slices"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

// printCase prints the whole of an instance, without the parts that it does not have. v is how the interface shows it.
func printCase(w io.Writer, c *inspect.Case, v *wire.InstanceView) error {
	of := func(print func(io.Writer, *inspect.Case) error) func() error {
		return func() error { return print(w, c) }
	}
	for _, part := range []func() error{
		func() error { return output.Instance(w, v) }, of(printStuck), of(printInFlight),
		func() error { return output.Timers(w, v) }, of(printEffects), of(printTimeline), of(printChain),
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func printStuck(w io.Writer, c *inspect.Case) error {
	return output.Part(w, "stuck: an operator has to retry, resolve or abandon", c.MoreStuck,
		[]string{"since", "transition", "scope", "key", "why", ">failures", "failure"}, c.Stuck, func(s *inspect.StuckCommand) []string {
			return []string{output.Moment(s.Since), orUndo(s.Transition, s.Undo), s.Scope, s.Key, s.Stuck, fmt.Sprint(s.Failures),
				output.OrNone(s.Failure)}
		})
}

func printInFlight(w io.Writer, c *inspect.Case) error {
	return output.Part(w, "in flight", false,
		[]string{"since", "transition", "scope", "key", "status", ">attempt", ">failures", "due", "lease ends", "node", "progress"},
		c.InFlight, func(r *transitions.Record) []string {
			node := ""
			if r.Status == transitions.Processing { // and not who had it last
				node = r.ClaimedBy
			}
			return []string{output.Moment(r.CreatedAt), orUndo(r.Transition, r.Phase == transitions.Undoing), r.Scope, r.Key, string(r.Status),
				fmt.Sprint(r.Attempt), fmt.Sprint(r.Failures), output.Moment(r.RunAt), output.Moment(r.LockedUntil), output.OrNone(node),
				output.OrNone(string(r.Progress))}
		})
}

func printEffects(w io.Writer, c *inspect.Case) error {
	effects := slices.Clone(c.Links.Effects)
	slices.Reverse(effects)
	return output.Part(w, "what a later failure would undo", false, []string{"transition", "scope", "key"}, effects,
		func(e *transitions.Effect) []string {
			return []string{e.Transition, e.Scope, e.Key}
		})
}

func printTimeline(w io.Writer, c *inspect.Case) error {
	title := "timeline"
	if c.Earlier > 0 {
		title = fmt.Sprintf("timeline, after %d earlier transitions", c.Earlier)
	}
	return output.Part(w, title, false, []string{"at", ">version", "transition", "from", "to", "actor", "key", "reason"}, c.Timeline,
		func(e *transitions.Entry) []string {
			cause, by := transitions.CauseOf(e.Cause, e.Scope, e.Key)
			return []string{output.Moment(e.At), fmt.Sprint(e.Version), e.Transition, output.OrNone(string(e.From)), string(e.To), e.Actor, e.Key,
				output.Why(e.Transition, cause, by, e.Payload, e.Reason)}
		})
}

func printChain(w io.Writer, c *inspect.Case) error {
	says := fmt.Sprintf("intact, %d entries", c.Chain.Entries)
	for _, b := range c.Chain.Broken {
		says = fmt.Sprintf("broken at version %d: %s", b.Version, b.Reason)
	}
	_, err := fmt.Fprintf(w, "\naudit chain: %s\n", says)
	return err
}
