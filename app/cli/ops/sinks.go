package ops

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/inspect"
)

var sinkOperations = []operation{
	{use: "list", short: "List sinks with their lag and failures",
		flags: []flagGroup{allTenants("tenant of the log")},
		run: list("v1/ops/sinks", func(p *api.SinkList) []inspect.SinkInfo { return p.Sinks },
			[]string{"sink", "state", ">lag", ">tenants", ">dead", ">aside", ">delivered", ">failed", ">parked", "age", "failure"},
			func(i *inspect.SinkInfo) []string {
				row := []string{i.Name, sinkState(i, time.Now())}
				for _, v := range []int64{i.Lag, i.Behind, i.DeadLetters, i.Aside, i.Delivered, i.Failed, i.Parked} {
					row = append(row, fmt.Sprint(v))
				}
				return append(row, output.Since(time.Now(), i.Oldest), output.OrNone(i.Failure))
			})},
	{use: "show SINK", short: "Show a sink and its positions in the logs of tenants",
		flags: []flagGroup{allTenants("tenant of the log"), limitFlag},
		run: func(ctx context.Context, s *session) error {
			body, err := s.api.Call(ctx, flags.Request{Path: s.path("v1/ops/sinks/{0}"), Query: s.query()})
			if err != nil {
				return err
			}
			return printPage(s, body, printSink)
		}},
	{use: "pause SINK", short: "Pause the delivery to a sink",
		flags: []flagGroup{authorFlags}, run: changeSink("pause", "paused")},
	{use: "resume SINK", short: "Resume a paused sink", run: changeSink("resume", "resumed")},
	{use: "forget SINK", short: "Delete a sink that is not configured anymore",
		long: `The command deletes the positions and dead letters of the sink, and retention stops
waiting for it. Remove the sink from the configuration of all nodes first: a node that has
it would register it again as a new sink.`,
		run: changeSink("forget", "forgotten")},
	{use: "move SINK --to POSITION", short: "Move a sink to another position of a tenant's log",
		long: `After a move back, all events after the position are delivered again. After a move
forward, the skipped events are never delivered, which requires a reason. Position 0 is the
beginning of the log.`,
		flags:    []flagGroup{oneTenant("tenant of the log"), integer("to", "position after which the sink continues"), authorFlags},
		operands: flags.Operands("SINK"),
		check: func(s *session) error {
			if !s.given("to") {
				return usage.Errorf("--to is missing")
			}
			return nil
		},
		run: func(ctx context.Context, s *session) error {
			to, _ := s.Flags().GetInt64("to")
			r := flags.Request{Method: http.MethodPost, Path: s.path("v1/ops/sinks/{0}/move"),
				Body: api.SinkMove{Position: &to, Reason: s.text("reason")}}
			if _, err := s.api.Call(ctx, r); err != nil {
				return err
			}
			return s.reportSink(fmt.Sprintf("moved to %d in the log of %s", to, s.text("tenant")))
		}},
	{use: "dead SINK", short: "List the dead letters of a sink",
		flags: []flagGroup{deadFlags, limitFlag}, check: checkDead, run: deadLetters},
	{use: "redrive SINK", short: "Deliver dead letters again",
		long: `They keep their ids, and the order of the log for each instance. The flags select them,
or --all selects all of the status.`,
		flags: []flagGroup{deadFlags, authorFlags, boolean("all", "all of this status")}, check: checkDeadChange,
		run: changeDead("redrive", "redriven")},
	{use: "skip SINK", short: "Discard dead letters permanently",
		long: `The flags select them, or --all selects all of the status. It requires a --reason.
Later events of their instances are delivered.`,
		flags: []flagGroup{deadFlags, authorFlags, boolean("all", "all of this status")}, check: checkDeadChange,
		run: changeDead("skip", "skipped")},
}

// changeSink returns the run of a command that changes a sink.
func changeSink(action, done string) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		r := flags.Request{Method: http.MethodPost, Path: s.path("v1/ops/sinks/{0}/" + action), Body: reason{s.text("reason")}}
		if _, err := s.api.Call(ctx, r); err != nil {
			return err
		}
		return s.reportSink(done)
	}
}

func (s *session) reportSink(done string) error {
	change := struct {
		Sink string `json:"sink"`
		Done string `json:"done"`
	}{s.args[0], done}
	return s.report(change, "%s: %s", s.args[0], done)
}

// printSink prints a sink with its cursors.
func printSink(w io.Writer, s *api.SinkPage) error {
	i, now := &s.Sink, time.Now()
	lines := [][2]string{{"sink", i.Name}, {"state", sinkState(i, now)}, {"node", output.OrNone(i.Node)}, {"since", output.Moment(i.Since)}}
	if len(i.Tenants) > 0 {
		lines = append(lines, [2]string{"tenants", strings.Join(i.Tenants, ", ")})
	}
	if p := i.Paused; p != nil {
		lines = append(lines, [2]string{"paused", fmt.Sprintf("%s by %s: %s", output.Moment(p.At), p.By, output.OrNone(p.Reason))})
	}
	if i.Failure != "" {
		lines = append(lines, [2]string{"failure", fmt.Sprintf("%s %s", output.Moment(i.FailedAt), output.OrNone(i.Failure))})
	}
	if err := output.Lines(w, 10, append(lines, [2]string{})); err != nil {
		return err
	}
	header := []string{"tenant", ">position", ">head", ">lag", "age", "failure", "moved"}
	return output.Table(w, header, s.Cursors, func(c *inspect.SinkCursor) []string {
		moved := "-"
		if m := c.Moved; m != nil {
			moved = fmt.Sprintf("%s from %d by %s: %s", output.Moment(m.At), m.From, m.By, output.OrNone(m.Reason))
		}
		return []string{c.Tenant, fmt.Sprint(c.Position), fmt.Sprint(c.Head), fmt.Sprint(c.Lag), output.Since(now, c.Oldest),
			output.OrNone(c.Failure), moved}
	})
}

// sinkState returns the state of a sink in a few words.
func sinkState(i *inspect.SinkInfo, now time.Time) string {
	switch {
	case i.Paused != nil:
		return "paused"
	case i.Node == "":
		return "no node delivers"
	case i.LeaseEnds.Before(now):
		return "its node is gone"
	case i.Stuck > 0:
		return "blocked"
	case i.Failures > 0:
		return "failing"
	}
	return "delivers"
}

// deadFlags select dead letters.
func deadFlags(c *cobra.Command) {
	c.Flags().String("status", string(inspect.DeadWaiting), "waiting (for an operator), queued, redriven or skipped")
	allTenants("tenant of the events")(c)
	instanceFlags(c)
	c.Flags().String("type", "", "only events of this type")
	c.Flags().Int64("position", 0, "only the events of this position of the tenant's log")
}

func checkDead(s *session) error {
	for _, name := range []string{"business-key", "position"} {
		if s.given(name) && s.text("tenant") == "" {
			return usage.Errorf("--%s needs --tenant", name)
		}
	}
	return nil
}

func checkDeadChange(s *session) error {
	for _, name := range []string{"all", "tenant", "workflow", "type", "instance", "position"} {
		if s.given(name) {
			return checkDead(s)
		}
	}
	return usage.Errorf("select dead letters: with --tenant, --workflow, --type, --business-key, --instance or --position, or --all")
}

// deadLetters lists dead letters. The API does not filter by position, so that needs all pages.
func deadLetters(ctx context.Context, s *session) error {
	header := []string{"since", "tenant", ">position", "type", "business key", "instance", "status", "kind", ">attempts", "failure"}
	row := func(l *inspect.DeadLetter) []string {
		return []string{output.Moment(l.Created), l.Tenant, fmt.Sprint(l.Position), l.Type, output.OrNone(l.BusinessKey), l.Instance.String(),
			string(l.Status), l.Kind, fmt.Sprint(l.Attempts), output.OrNone(l.Failure)}
	}
	position, _ := s.Flags().GetInt64("position")
	if position == 0 {
		return list("v1/ops/sinks/{0}/dead", func(p *api.DeadPage) []inspect.DeadLetter { return p.Dead }, header, row)(ctx, s)
	}
	all := api.DeadPage{Dead: []inspect.DeadLetter{}}
	err := eachPage(ctx, s, "v1/ops/sinks/{0}/dead", s.query(), func(p *api.DeadPage) string {
		for _, l := range p.Dead {
			if l.Position == position {
				all.Dead = append(all.Dead, l)
			}
		}
		return p.Next
	})
	if err != nil {
		return err
	}
	return s.print(&all, func(w io.Writer) error { return output.Table(w, header, all.Dead, row) })
}

// changeDead returns the run of a command that changes dead letters.
func changeDead(action, done string) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		selection := api.DeadSelection{Status: inspect.DeadStatus(s.text("status")), Workflow: s.optional("workflow"), Type: s.optional("type"),
			Instance: s.optional("instance"), BusinessKey: s.optional("business-key"), Reason: s.text("reason")}
		if position, _ := s.Flags().GetInt64("position"); s.given("position") {
			selection.Position = &position
		}
		// A tenant alone selects all of it.
		selection.All = s.enabled("all") || !s.given("workflow") && !s.given("type") && !s.given("instance") && !s.given("position")
		changed, err := call[api.DeadChange](ctx, s, flags.Request{Method: http.MethodPost, Path: s.path("v1/ops/sinks/{0}/" + action),
			Query: s.ofAllTenants(map[string][]string{}), Body: selection})
		if err != nil {
			return err
		}
		letters := "dead letters"
		if changed.Changed == 1 {
			letters = "dead letter"
		}
		return s.report(changed, "%s: %d %s %s", s.args[0], changed.Changed, letters, done)
	}
}
