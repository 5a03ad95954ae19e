package ops

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

// printCase prints the whole of an instance, without its empty parts.
func printCase(w io.Writer, c *api.Case) error {
	v := &c.Instance
	for _, part := range []func() error{
		func() error { return output.Instance(w, v) },
		func() error {
			return output.Part(w, "stuck: an operator has to retry, resolve or abandon", slices.Contains(v.More, "stuck"),
				[]string{"since", "transition", "scope", "key", "why", ">failures", "failure"}, v.Stuck, func(s *wire.StuckCommand) []string {
					return []string{output.Moment(s.Since), orUndo(s.Transition, s.Undo), s.Scope, s.Key, s.Stuck, fmt.Sprint(s.Failures),
						output.OrNone(s.Failure)}
				})
		},
		func() error { return printInFlight(w, c) },
		func() error { return output.Timers(w, v) },
		func() error {
			return output.Part(w, "what a later failure would undo", slices.Contains(v.More, "effects"), []string{"transition", "scope", "key"},
				v.Effects, func(e *wire.CommandRef) []string { return []string{e.Transition, e.Scope, e.Key} })
		},
		func() error { return printTimeline(w, c) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	chain := fmt.Sprintf("intact, %d entries", c.Chain.Entries)
	for _, b := range c.Chain.Broken {
		chain = fmt.Sprintf("broken at version %d: %s", b.Version, b.Reason)
	}
	_, err := fmt.Fprintf(w, "\naudit chain: %s\n", chain)
	return err
}

// printInFlight prints the command that takes the instance on, and undos.
func printInFlight(w io.Writer, c *api.Case) error {
	header := []string{"since", "transition", "scope", "key", "status", ">attempt", ">failures", "due", "lease ends", "node", "progress"}
	return output.Part(w, "in flight", false, header, c.InFlight, func(r *wire.CommandStatus) []string {
		node := ""
		if r.Status == transitions.Processing { // otherwise it is the last node
			node = r.ClaimedBy
		}
		current := c.Instance.InFlight
		undo := current == nil || current.Scope != r.Scope || current.Key != r.Key
		return []string{output.Moment(r.CreatedAt), orUndo(r.Transition, undo), r.Scope, r.Key, string(r.Status), fmt.Sprint(r.Attempt),
			fmt.Sprint(r.Failures), output.Moment(r.RunAt), output.Moment(r.LockedUntil), output.OrNone(node), output.OrNone(string(r.Progress))}
	})
}

func printTimeline(w io.Writer, c *api.Case) error {
	title := "timeline"
	if c.Earlier > 0 {
		title = fmt.Sprintf("timeline, after %d earlier transitions", c.Earlier)
	}
	return output.Part(w, title, false, []string{"at", ">version", "transition", "from", "to", "actor", "key", "reason"}, c.Timeline,
		func(e *wire.Entry) []string {
			return []string{output.Moment(e.At), fmt.Sprint(e.Version), e.Transition, output.OrNone(string(e.From)), string(e.To), e.Actor, e.Key,
				output.Why(e.Transition, e.Cause, e.CausedBy, e.Payload, e.Reason)}
		})
}

func printCounts(w io.Writer, c *inspect.Counts) error {
	total := inspect.InstanceCount{Workflow: "all", Count: c.Total, Exact: c.Exact}
	header := []string{"workflow", ">version", "state", "open", ">count"}
	return output.Table(w, header, append(c.Counts, total), func(k *inspect.InstanceCount) []string {
		if k.Definition == 0 {
			return []string{k.Workflow, "", "", "", output.Count(k.Count, !k.Exact)}
		}
		return []string{k.Workflow, fmt.Sprint(k.Definition), string(k.State), fmt.Sprint(k.Open), output.Count(k.Count, !k.Exact)}
	})
}

func printKeys(w io.Writer, k *inspect.Keys) error {
	type line struct {
		what   string
		count  string
		oldest time.Time
	}
	var lines []line
	for _, s := range k.Statuses {
		lines = append(lines, line{what: string(s.Status), count: output.Count(s.Count, s.Estimate)})
	}
	lines = append(lines,
		line{"of those in flight:", "", k.OldestInFlight},
		line{"  scheduled", output.Count(k.Scheduled, false), time.Time{}},
		line{"  due", output.Count(k.Due, false), k.OldestDue},
		line{"  stale", output.Count(k.Stale, false), k.OldestStale},
		line{"  lapsed", output.Count(k.Lapsed, false), k.OldestLapsed},
		line{"  stuck", output.Count(k.Stuck, false), time.Time{}},
		line{fmt.Sprintf("  %d attempts or more", inspect.ManyAttempts), output.Count(k.Attempts, false), time.Time{}},
		line{"waiting for retention:", "", k.OldestExpired},
		line{"  expired", output.Count(k.Expired, false), time.Time{}},
		line{"  forgotten", output.Count(k.Forgotten, false), time.Time{}},
		line{"dead messages", output.Count(k.DeadMessages, false), k.OldestDeadMessage})
	if k.AtLeast {
		lines = append(lines, line{what: "there is more in flight than is counted here"})
	}
	err := output.Table(w, []string{"keys", ">count", "oldest", "age"}, lines, func(l *line) []string {
		return []string{l.what, l.count, output.Moment(l.oldest), output.Since(k.At, l.oldest)}
	})
	if err != nil {
		return err
	}
	if err := printScopes(w, "attempts at this node since its start", k.Scopes); err != nil {
		return err
	}
	return printScopes(w, fmt.Sprintf("attempts at all nodes since %s", k.RecordedSince.Format(time.DateOnly)), k.Recorded)
}

func printScopes(w io.Writer, title string, scopes []inspect.ScopeCount) error {
	if len(scopes) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\n%s:\n", title); err != nil {
		return err
	}
	header := []string{"scope", "tenant", ">attempts", ">new", ">replayed", ">active", ">mismatched", ">expired", ">suppressed"}
	return output.Table(w, header, scopes, func(of *inspect.ScopeCount) []string {
		s := inspect.ScopeCount(*of)
		row := []string{output.OrNone(s.Scope), output.OrNone(s.Tenant)}
		for _, n := range []int64{s.Attempts(), s.New, s.Replayed, s.Active, s.Mismatched, s.Expired} {
			row = append(row, fmt.Sprint(n))
		}
		return append(row, fmt.Sprintf("%.1f %%", 100*s.Rate()))
	})
}

func nodeRow(n *inspect.NodeInfo) []string {
	var versions []string
	for _, v := range n.Knowing {
		versions = append(versions, fmt.Sprint(v.Workflow, " ", v.Version))
	}
	seen := output.Moment(n.SeenAt)
	if !n.Alive {
		seen += ", not heard of"
	}
	leases := fmt.Sprint(n.Leases)
	if n.AtLeast {
		leases += " or more"
	}
	return []string{n.Name, n.Build, output.Moment(n.BegunAt), seen, output.OrNone(strings.Join(versions, ", ")),
		output.OrNone(doings(n)), leases}
}

// doings says what a node does for all.
func doings(n *inspect.NodeInfo) string {
	does := append([]string{}, n.Leads...)
	for _, s := range n.Sinks {
		does = append(does, "sink "+s)
	}
	for _, id := range n.Migrations {
		does = append(does, fmt.Sprint("migration ", id))
	}
	return strings.Join(does, ", ")
}

func printRetention(w io.Writer, r *inspect.Retention, assumed bool) error {
	until, next, guess := output.Maybe(r.Until), output.Maybe(r.Next), ""
	if r.Next != nil {
		next += ", when a key is due"
	}
	if r.Until != nil {
		until += ", unless it goes on"
	}
	if assumed {
		guess = ", it is assumed; --keep-events where the nodes have another"
	}
	lines := [][2]string{{"node", output.OrNone(r.Node)}, {"since", output.Maybe(r.Since)}, {"until", until}, {"next", next},
		{"keeps", fmt.Sprintf("events for %s%s", time.Duration(r.KeepEvents)*time.Second, guess)}, {}}
	if err := output.Lines(w, 7, lines); err != nil {
		return err
	}
	header := []string{"partition", "from", "to", ">rows", ">MiB", "state"}
	return output.Table(w, header, r.Partitions, func(p *inspect.Partition) []string {
		state := "in use"
		switch {
		case p.Detached:
			state = "being dropped"
		case p.Over && p.Held != "":
			state = "kept: " + output.OrNone(p.Held)
		case p.Over:
			state = "to be dropped"
		}
		return []string{p.Name, output.Moment(p.From), output.Moment(p.To), fmt.Sprintf("~%d", p.Rows),
			fmt.Sprintf("%.1f", float64(p.Bytes)/(1<<20)), state}
	})
}
