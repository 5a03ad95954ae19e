package ops

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

// operations are the commands directly under ops.
var operations = []operation{
	{use: "counts", short: "Count instances by workflow, version and state",
		long: `Up to 10,000 instances of a kind are counted. Larger counts are estimates from the
statistics of PostgreSQL, marked with "~".`,
		flags: []flagGroup{allTenants("tenant of the instances"), flags.Selection},
		run:   show("v1/counts", printCounts)},
	{use: "keys", short: "Count keys by status: in flight, finished, expired",
		long: `Due, expired and stuck ones are counted too. On a large table the number of finished
commands is an estimate, marked with "~", and commands in flight are counted up to a
limit.

Nodes record suppressed duplicates by scope once a minute; the database keeps them
for 30 days. With --node a node answers, and its own counts since its start are
shown too. If the node requires a credential, PAWL_TOKEN has an API key or a token
with the grant operate, and --tenant names its tenant; all tenants require the
grant operate:all.`,
		flags: []flagGroup{allTenants("tenant of the keys"), flags.Node},
		run: func(ctx context.Context, s *session) error {
			k, err := call[inspect.Keys](ctx, s, flags.Request{Path: s.path("v1/ops/keys"), Query: s.query()})
			if err == nil && k.Tenant != s.text("tenant") {
				err = fmt.Errorf("the credential in %s is one of the tenant %q, not of %q", flags.EnvToken, output.Visible(k.Tenant), s.text("tenant"))
			}
			if err != nil {
				return err
			}
			return s.print(&k, func(w io.Writer) error { return printKeys(w, &k) })
		}},
	{use: "show KEY", short: "Show an instance with its commands, timeline and audit chain",
		long: fmt.Sprintf(`The output has the state, commands in flight, timers, scheduled and stuck commands,
effects that a later failure would undo, the last %d transitions, and the result of
verifying the audit chain.

KEY is the business key or the id. If instances of several workflows have the business
key, --workflow selects one.`, inspect.MaxTimeline),
		flags: []flagGroup{oneTenant("tenant of the instance"), text("workflow", "", "the workflow of the business key")},
		run:   showInstance},
	{use: "commands", short: "List the commands in flight, timers among them",
		long: `The list has stuck, processing, due, paused and scheduled commands, as "ops keys" counts
them, each kind ordered by its time. See stuck and show.

--proof finds the commands of an API key and of tickets that were requested with it:
  ops commands --status scheduled --proof 4fKq0ZbT9xWc`,
		flags: []flagGroup{oneTenant("tenant of the commands"), workflowFlag, text("actor", "", "only those of this actor"),
			text("proof", "", "only those whose proof contains this text, such as the id of an API key"),
			text("status", "", "only those of this kind: "+commandKinds), limitFlag},
		check: func(s *session) error {
			if s.given("status") && !slices.Contains(api.CommandKinds, s.text("status")) {
				return usage.Errorf("--status is one of %s", commandKinds)
			}
			return nil
		},
		run: list("v1/ops/commands", func(p *api.CommandPage) []wire.CommandStatus { return p.Commands },
			[]string{"status", "workflow", "business key", "transition", "actor", "scope", "key", ">attempt", "due", "with", "lease", "stuck", "proof"},
			func(s *wire.CommandStatus) []string {
				return []string{string(s.Status), s.Workflow, output.OrNone(s.BusinessKey), orUndo(s.Transition, s.Undo), s.Actor, s.Scope, s.Key,
					fmt.Sprint(s.Attempt), output.Moment(s.RunAt), output.OrNone(s.ClaimedBy), output.Moment(s.LockedUntil),
					output.OrNone(s.Stuck), output.OrNone(s.Proof)}
			})},
	{use: "stuck", short: "List the commands that wait for an operator",
		long: `The longest waiting comes first. These are commands whose effect may have happened
outside and cannot be checked, and undos that failed. See retry, resolve and abandon.`,
		flags: []flagGroup{oneTenant("tenant of the commands"), instanceFlags, limitFlag},
		run: list("v1/ops/stuck", func(p *api.CommandPage) []wire.CommandStatus { return p.Commands },
			[]string{"since", "workflow", "business key", "transition", "scope", "key", "why", ">failures", "failure"},
			func(s *wire.CommandStatus) []string {
				return []string{output.Moment(s.UpdatedAt), s.Workflow, output.OrNone(s.BusinessKey), orUndo(s.Transition, s.Undo), s.Scope, s.Key,
					s.Stuck, fmt.Sprint(s.Failures), output.OrNone(s.Failure)}
			})},
	settlement(transitions.Retry, "Retry a stuck command with all its attempts"),
	settlement(transitions.Resolve, "Record that a stuck command has happened, with its result",
		text("result", "", "what the activity would have returned, as JSON")),
	settlement(transitions.Abandon, "Give up a stuck command"),
	{use: "pause WORKFLOW", short: "Pause a workflow",
		long: `Commands in flight of the tenant's instances complete. New commands are refused; timers
and scheduled commands wait. Pausing a paused workflow changes nothing. See paused and
resume.`,
		flags: []flagGroup{oneTenant("tenant of the instances"), authorFlags},
		run:   changePause(http.MethodPut, "paused")},
	{use: "resume WORKFLOW", short: "Resume a paused workflow",
		flags: []flagGroup{oneTenant("tenant of the instances")},
		run:   changePause(http.MethodDelete, "resumed")},
	{use: "paused", short: "List paused workflows or instances",
		long: `With --instances the list has the instances that are paused individually. With -o json it
has both.`,
		flags: []flagGroup{oneTenant("tenant of the instances"), boolean("instances", "list instances"), workflowFlag, limitFlag},
		run:   showPaused},
	{use: "versions", short: "List the versions of workflows, their instances, and the nodes that know them",
		long: `The list has all versions that have ever run on this database: the default version of
new instances ("as set" if ops begin set it), the number of instances of each version,
by state, and the live nodes with and without it. A version without open instances can
be left out of the next build. Large counts are estimates, as in ops counts.

With --node a node answers. If it requires a credential, PAWL_TOKEN has an API key or
a token with the grant operate:all.`,
		flags: []flagGroup{flags.Node},
		run: list("v1/ops/versions", func(p *api.VersionList) []inspect.WorkflowVersion { return p.Versions },
			[]string{"workflow", ">version", "begins", ">open", "states", "nodes", "nodes without it"}, versionRow)},
	{use: "begin WORKFLOW VERSION", short: "Set the default version of a workflow",
		long: `All nodes begin new instances with it, or with the newest older version if they do not
know it. With "newest" as the version each node uses the newest version that it knows,
which is the default. Existing instances keep their version. The command returns when
every live node has confirmed; if one does not, it fails after 40 seconds and names
that node.

With --node a node sets it. If it requires a credential, PAWL_TOKEN has an API key or
a token with the grant operate:all, whose actor is recorded.`,
		flags: []flagGroup{byFlag, flags.Node}, check: checkBegin, run: begin},
	{use: "migrate WORKFLOW FROM TO", short: "Migrate running instances to another version",
		long: `One of the nodes that serve migrates the instances of all tenants in the background, by
the plan that the workflow declares. Each migration is a transition of its own, audited
with actor and reason. Instances that the plan rejects keep their version and are
counted with the reason. This command shows the progress and may be interrupted: the
migration continues.

If new instances begin with another version than FROM, the migration also takes those
that are committed after the request, and ends when none is left. If they begin with
FROM, it takes the existing ones and reports how many have begun since.

With --dry-run it reads every instance, reports the outcome for each state, and writes
nothing.`,
		flags: []flagGroup{authorFlags, boolean("dry-run", "report the outcome for each instance, and write nothing"),
			boolean("background", "do not wait for its end"), integer("rate", "maximum number of instances per second (default 500)")},
		check: checkMigrate, run: migrateInstances},
	{use: "migrations", short: "List the migrations of instances with their progress",
		run: list("v1/ops/migrations", func(p *api.MigrationList) []inspect.Migration { return p.Migrations },
			[]string{">id", "begun", "workflow", ">from", ">to", ">migrated", ">skipped", ">rejected", ">left", "state"}, migrationRow)},
	{use: "stop-migration ID", short: "Stop a migration of instances",
		long:  `Migrated instances stay migrated. The actor and the reason of the first request are kept.`,
		flags: []flagGroup{authorFlags}, check: checkStopMigration, run: stopMigration},
	{use: "correct", short: "Correct the state or the data of an instance",
		long: `The instance is the one with --instance, or with --workflow and --business-key. A
correction is a transition, pawl.corrected, with actor and reason. The states, timers,
attributes and data format of the definition apply; guards and roles do not. A closed
instance stays closed.

--data is a JSON object with the members to change; null means the zero value. On a
database this program commits the correction itself. --dry-run shows the corrected
instance without writing.`,
		flags: []flagGroup{oneTenant("tenant of the instance"), instanceFlags, text("state", "", "the new state"),
			text("data", "", "the members of the data that change, as JSON"),
			boolean("dry-run", "show the corrected instance without writing"), authorFlags},
		check: checkCorrection, run: correct, commits: true},
	{use: "retention", short: "Show the state of retention and the partitions",
		long: `The retention period of events is a setting of the nodes that the database does not
store: set --keep-events if it is not the default.`,
		flags: []flagGroup{func(c *cobra.Command) {
			flags.KeepEvents(c, new(time.Duration), "retention period of events, as configured with serve")
		}},
		run: func(ctx context.Context, s *session) error {
			return show("v1/ops/retention", func(w io.Writer, r *inspect.Retention) error {
				return printRetention(w, r, !s.given("keep-events"))
			})(ctx, s)
		}},
	{use: "nodes", short: "List the nodes with their versions and work",
		long: `The list has the nodes that run or have run lately, the oldest first: the program of
each, the versions of workflows that it knows, its work for all nodes, the sinks that
it delivers to, and the number of its leases on commands in flight.

A node without a sign of life for half a minute is "not heard of"; other nodes take
over its work.

With --node a node answers. If it requires a credential, PAWL_TOKEN has an API key or
a token with the grant operate. The leases and sinks are then those of its tenant.`,
		flags: []flagGroup{flags.Node},
		run: func(ctx context.Context, s *session) error {
			r := flags.Request{Path: s.path("v1/ops/nodes")}
			if s.text("node") == "" {
				r.Query = map[string][]string{"all_tenants": {"true"}}
			}
			nodes, err := call[api.NodeList](ctx, s, r)
			if err != nil {
				return err
			}
			header := []string{"node", "build", "since", "seen", "versions", "does", ">leases"}
			return s.print(&nodes, func(w io.Writer) error { return output.Table(w, header, nodes.Nodes, nodeRow) })
		}},
}

var commandKinds = strings.Join(api.CommandKinds, ", ")

func workflowFlag(c *cobra.Command) { flags.Workflow(c, new(string)) }

// orUndo returns a transition as a table shows it, or its undo.
func orUndo(transition string, undo bool) string {
	if undo {
		return "undo of " + transition
	}
	return transition
}

// changePause returns the run of a command that pauses or resumes a workflow.
func changePause(method, done string) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		r := flags.Request{Method: method, Path: s.path("v1/ops/paused/{0}")}
		if method == http.MethodPut {
			r.Body = reason{s.text("reason")}
		}
		if _, err := s.api.Call(ctx, r); err != nil {
			return err
		}
		change := struct {
			Tenant   string `json:"tenant"`
			Workflow string `json:"workflow"`
			Done     string `json:"done"`
		}{s.text("tenant"), s.args[0], done}
		return s.report(change, "%s: %s", s.args[0], done)
	}
}

// showPaused lists workflows or instances; JSON has both.
func showPaused(ctx context.Context, s *session) error {
	body, err := s.api.Call(ctx, flags.Request{Path: s.path("v1/ops/paused"), Query: s.query()})
	if err != nil {
		return err
	}
	if !s.json && !s.enabled("instances") {
		all, err := flags.Decode[api.PausedList](body)
		if err != nil {
			return err
		}
		return output.Table(s.OutOrStdout(), []string{"since", "workflow", "by", "reason"}, all.Workflows,
			func(w *inspect.PausedWorkflow) []string {
				return []string{output.Moment(w.At), w.Workflow, w.Actor, output.OrNone(w.Reason)}
			})
	}
	header := []string{"since", "workflow", "business key", "instance", "state", "by", "reason"}
	return printPage(s, body, func(w io.Writer, p *api.PausedList) error {
		return output.Table(w, header, p.Instances, func(p *inspect.PausedInstance) []string {
			return []string{output.Moment(p.At), p.Workflow, output.OrNone(p.BusinessKey), p.Instance.String(), string(p.State), p.Actor,
				output.OrNone(p.Reason)}
		})
	})
}
