package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
)

var (
	commands = counter("pawl_commands_total",
		"Commands of callers that were answered, by the outcome of their claim: new, replayed, final (a stored refusal), active "+
			"(in flight), stale, retryable, mismatched (another request), expired.", "claim")
	commandsRefused = counter("pawl_commands_refused_total", "Commands that were refused because the queue was full.")
	commandsWaiting = gauge("pawl_commands_waiting", "Commands that wait for a committer.")
	groups          = counter("pawl_commit_groups_total", "Transactions that the commit pipeline committed.")
	groupsAgain     = counter("pawl_commit_reruns_total", "Runs of a group that another transaction won.")
	groupsLost      = counter("pawl_commit_connections_lost_total", "Runs of a group that lost their connection to the database.")
	groupsSplit     = counter("pawl_commit_splits_total", "Groups that were split to find the command that could not be stored.")
	commandsAside   = counter("pawl_commit_aside_total",
		"Commands that went to the retry lane, to wait for a lock or to run a transition's own SQL.")
	scoped = counter("pawl_scope_commands_total",
		"Attempts by scope (the transition of a default scope, or \"named\" for scopes that callers chose) and outcome: new, "+
			"replayed, active, mismatched, expired. All but new are duplicates that were suppressed.", "scope", "outcome")
	scopesRecorded = sharedGauge("pawl_scope_commands_recorded",
		"Attempts by scope and outcome at all nodes in the last 30 days, as recorded in the database once a minute.", "scope", "outcome")
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
	retried     = counter("pawl_inflight_retries_total", "Attempts that failed and are to be repeated.")
	becameStuck = counter("pawl_inflight_stuck_total", "Commands that were left to an operator.")
	returned    = counter("pawl_inflight_returned_total", "Commands that were released without a failed attempt.")
	heartbeats  = counter("pawl_inflight_heartbeats_total", "Leases that were renewed.")
	leasesLost  = counter("pawl_inflight_leases_lost_total", "Leases that were lost while an attempt was under way.")
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
