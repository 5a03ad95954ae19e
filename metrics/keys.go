package metrics

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
)

var (
	keys = sharedGauge("pawl_keys",
		"Keys by the status of their command. Commands in flight are counted up to 10,000 of each kind; "+
			"finished ones are estimated on large tables.", "status")
	keysScheduled  = sharedGauge("pawl_keys_scheduled", "Commands in flight whose time has not come.")
	keysDue        = sharedGauge("pawl_keys_due", "Commands in flight that are due and not claimed.")
	keysStale      = sharedGauge("pawl_keys_stale", "Commands whose lease has expired and that no node has taken over.")
	keysLapsed     = sharedGauge("pawl_keys_lapsed", "Claims of callers of the SQL contract that have expired.")
	keysStuck      = sharedGauge("pawl_keys_stuck", "Commands that wait for an operator.")
	keysAttempts   = sharedGauge("pawl_keys_many_attempts", "Commands in flight that were claimed five times or more.")
	oldestInFlight = sharedGauge("pawl_keys_oldest_in_flight_seconds",
		"Age of the oldest command in flight, without those whose time has not come; 0 for none.")
	oldestDue = sharedGauge("pawl_keys_oldest_due_seconds",
		"Time since the oldest due command became due, including releases without an attempt; 0 for none.")
	oldestStale  = sharedGauge("pawl_keys_oldest_stale_seconds", "Time since the first of these leases expired; 0 for none.")
	oldestLapsed = sharedGauge("pawl_keys_oldest_lapsed_seconds", "Time since the first of these claims expired; 0 for none.")
	keysExpired  = sharedGauge("pawl_keys_expired_waiting",
		"Expired answers that retention has not removed yet; counted up to 10,000 with the tombstones.")
	keysForgotten = sharedGauge("pawl_keys_forgotten_waiting", "Expired tombstones that retention has not deleted yet.")
	oldestExpired = sharedGauge("pawl_keys_oldest_expired_seconds", "Time since the first of these answers expired; 0 for none.")
	deadMessages  = sharedGauge("pawl_inbox_dead_messages", "Messages that were not consumed and wait for an operator; counted up to 10,000.")
	oldestMessage = sharedGauge("pawl_inbox_oldest_dead_message_seconds", "Age of the oldest of them; 0 for none.")
)

func sendKeys(ch chan<- prometheus.Metric, k *inspect.Keys, _ time.Time) {
	sendScopes(ch, scopesRecorded, k.Recorded)
	for _, s := range k.Statuses {
		send(ch, keys, s.Count, string(s.Status))
	}
	send(ch, keysScheduled, k.Scheduled)
	send(ch, keysDue, k.Due)
	send(ch, keysStale, k.Stale)
	send(ch, keysLapsed, k.Lapsed)
	send(ch, keysStuck, k.Stuck)
	send(ch, keysAttempts, k.Attempts)
	send(ch, oldestInFlight, age(k.At, k.OldestInFlight))
	send(ch, oldestDue, age(k.At, k.OldestDue))
	send(ch, oldestStale, age(k.At, k.OldestStale))
	send(ch, oldestLapsed, age(k.At, k.OldestLapsed))
	send(ch, keysExpired, k.Expired)
	send(ch, keysForgotten, k.Forgotten)
	send(ch, oldestExpired, age(k.At, k.OldestExpired))
	send(ch, deadMessages, k.DeadMessages)
	send(ch, oldestMessage, age(k.At, k.OldestDeadMessage))
}

// age returns the seconds since then; 0 for the zero time.
func age(now, then time.Time) float64 {
	if then.IsZero() {
		return 0
	}
	return max(now.Sub(then).Seconds(), 0)
}

var (
	instances = sharedGauge("pawl_instances",
		"Instances by workflow, version of the definition, state, and whether it is final. Up to 10,000 of a kind are counted, "+
			"fewer with many tenants; larger numbers are estimates of the planner. A kind that this process has seen stays with 0 "+
			"when it has no instances.", "workflow", "definition", "state", "open")
	instancesEstimated = sharedGauge("pawl_instances_estimated", "How many of the values of pawl_instances are estimates.")
)

// remembered adds kinds with zero instances that an earlier read has seen, because a series that ends would keep its last value in sums and
// alerts for a while. Their number is bounded by the states of the workflows' versions. It is for one reading.
func remembered(read func(context.Context) (inspect.Counts, error)) func(context.Context) (inspect.Counts, error) {
	seen := map[inspect.InstanceCount]bool{}
	return func(ctx context.Context) (inspect.Counts, error) {
		c, err := read(ctx)
		if err != nil {
			return c, err
		}
		now := map[inspect.InstanceCount]bool{}
		for _, k := range c.Counts {
			k.Count, k.Exact = 0, false
			seen[k], now[k] = true, true
		}
		for k := range seen {
			if !now[k] {
				k.Exact = c.Exact // a kind missing from an estimate may still have instances
				c.Counts = append(c.Counts, k)
			}
		}
		return c, nil
	}
}

func sendCounts(ch chan<- prometheus.Metric, c *inspect.Counts, _ time.Time) {
	estimated := 0
	for _, k := range c.Counts {
		send(ch, instances, k.Count, k.Workflow, strconv.Itoa(k.Definition), string(k.State), strconv.FormatBool(k.Open))
		if !k.Exact {
			estimated++
		}
	}
	send(ch, instancesEstimated, estimated)
}

var (
	versionNodes = sharedGauge("pawl_version_nodes",
		"Serving nodes, by whether they know the version of the workflow, for all versions that have ever run here.",
		"workflow", "definition", "known")
	versionBegins = sharedGauge("pawl_version_begins",
		"1 for the default version of the workflow.", "workflow", "definition")
)

func sendVersions(ch chan<- prometheus.Metric, list *[]inspect.WorkflowVersion, _ time.Time) {
	for i := range *list {
		v := &(*list)[i]
		definition := strconv.Itoa(v.Version)
		send(ch, versionNodes, len(v.Nodes), v.Workflow, definition, "true")
		send(ch, versionNodes, len(v.NodesWithout), v.Workflow, definition, "false")
		send(ch, versionBegins, truth(v.Begins), v.Workflow, definition)
	}
}

var (
	instancesMigrated = counter("pawl_migrated_instances_total", "Instances that this node migrated to another version, by outcome.", "outcome")
	migrationFailures = counter("pawl_migration_failures_total", "Failures of migrations on this node that were retried.")
	migrationsHeld    = sharedGauge("pawl_migrations_held", "Migrations of instances that wait for a node or for activities.")
	migrationLeft     = sharedGauge("pawl_migration_left_instances", "Instances left in running migrations, approximately.")
)

func sendMigrated(ch chan<- prometheus.Metric, s engine.MigrationStats) {
	send(ch, instancesMigrated, s.Migrated, "migrated")
	send(ch, instancesMigrated, s.Skipped, "skipped")
	send(ch, instancesMigrated, s.Rejected, "rejected")
	send(ch, migrationFailures, s.Failures)
}

func sendMigrations(ch chan<- prometheus.Metric, list *[]inspect.Migration, _ time.Time) {
	held, left := 0, int64(0)
	for i := range *list {
		m := &(*list)[i]
		if !m.EndedAt.IsZero() {
			continue
		}
		if m.Held != "" {
			held++
		}
		left += m.Left()
	}
	send(ch, migrationsHeld, held)
	send(ch, migrationLeft, left)
}

var (
	commands = counter("pawl_commands_total",
		"Commands of callers that were answered, by the outcome of their claim: new, replayed, final (a stored refusal), active "+
			"(in flight), stale, retryable, mismatched (another request), expired.", "claim")
	commandsRefused = counter("pawl_commands_refused_total", "Commands that were refused because the queue was full.")
	commandsWaiting = gauge("pawl_commands_waiting", "Commands that wait for a committer.")
	groups          = counter("pawl_commit_groups_total", "Transactions that the commit pipeline committed.")
	groupsAgain     = counter("pawl_commit_reruns_total", "Runs of a group that lost a conflict with another transaction.")
	groupsLost      = counter("pawl_commit_connections_lost_total", "Runs of a group that lost their connection to the database.")
	groupsSplit     = counter("pawl_commit_splits_total", "Groups that were split to find the command that could not be stored.")
	commandsAside   = counter("pawl_commit_aside_total",
		"Commands that entered the retry lane, to wait for a lock or to run a transition's own SQL.")
	scoped = counter("pawl_scope_commands_total",
		"Attempts by scope (the transition of a default scope, or \"named\" for scopes that callers chose) and outcome: new, "+
			"replayed, active, mismatched, expired. All but new are duplicates that were suppressed.", "scope", "outcome")
	scopesRecorded = sharedGauge("pawl_scope_commands_recorded",
		"Attempts by scope and outcome on all nodes in the last 30 days, recorded in the database once a minute.", "scope", "outcome")
)

// namedScopes represents all scopes chosen by callers, whose number is unbounded.
const namedScopes = "named"

// sendScopes sends the sums over all tenants.
func sendScopes(ch chan<- prometheus.Metric, of kind, list []inspect.ScopeCount) {
	sums := map[string]*inspect.ScopeCount{}
	for i := range list {
		name := list[i].Scope
		if list[i].Named {
			name = namedScopes
		}
		if sums[name] == nil {
			sums[name] = &inspect.ScopeCount{}
		}
		sums[name].Merge(&list[i])
	}
	for name, s := range sums {
		for outcome, n := range map[string]int64{"new": s.New, "replayed": s.Replayed, "active": s.Active, "mismatched": s.Mismatched,
			"expired": s.Expired} {
			send(ch, of, n, name, outcome)
		}
	}
}

var (
	polls     = counter("pawl_inflight_polls_total", "Polls for due work.")
	claimed   = counter("pawl_inflight_claimed_total", "Commands in flight that this node claimed.")
	takenOver = counter("pawl_inflight_taken_over_total", "Of those, commands taken over from a node whose lease had expired.")
	ended     = counter("pawl_inflight_ended_total",
		"Ends of attempts by outcome: decided (a scheduled command), succeeded, failed, cancelled, abandoned, undone (an effect).", "outcome")
	retried     = counter("pawl_inflight_retries_total", "Failed attempts that will be retried.")
	becameStuck = counter("pawl_inflight_stuck_total", "Commands that were left to an operator.")
	returned    = counter("pawl_inflight_returned_total", "Commands that were released without a failed attempt.")
	heartbeats  = counter("pawl_inflight_heartbeats_total", "Leases that were renewed.")
	leasesLost  = counter("pawl_inflight_leases_lost_total", "Leases that were lost during an attempt.")
	busy        = gauge("pawl_inflight_busy_workers", "Workers, and scheduled commands being decided.")
	held        = gauge("pawl_inflight_leases", "Leases that this node holds.")
)

var activityTook = histogram("pawl_activity_duration_seconds",
	"How long attempts of activities took, by outcome: succeeded, failed (permanently), retried, timed_out, cancelled, stuck (left "+
		"to an operator), interrupted (the node stopped or lost the lease), undone, undo_failed. A check counts with the attempt that "+
		"begins with it. The wait for a worker and the commit are not included.", "workflow", "activity", "outcome")

func sendInFlight(ch chan<- prometheus.Metric, s engine.InFlightStats) {
	send(ch, polls, s.Polls)
	send(ch, claimed, s.Claimed)
	send(ch, takenOver, s.TakenOver)
	for outcome, n := range map[string]int64{"decided": s.Decided, "succeeded": s.Succeeded, "failed": s.Failed, "cancelled": s.Cancelled,
		"abandoned": s.Abandoned, "undone": s.Undone} {
		send(ch, ended, n, outcome)
	}
	send(ch, retried, s.Retried)
	send(ch, becameStuck, s.Stuck)
	send(ch, returned, s.Returned)
	send(ch, heartbeats, s.Heartbeats)
	send(ch, leasesLost, s.Lost)
	send(ch, busy, s.Busy)
	send(ch, held, s.Held)
}
