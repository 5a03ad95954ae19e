package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
)

var (
	commands = counter("pawl_commands_total",
		"Commands of callers that were answered, by what their claim of the key amounted to: new, replayed, final (a stored refusal), active (in flight), stale, retryable, mismatched (another request), expired.", "claim")
	commandsRefused = counter("pawl_commands_refused_total", "Commands that were refused because the queue was full.")
	commandsWaiting = gauge("pawl_commands_waiting", "Commands in the queues of the commit pipeline.")
	groups          = counter("pawl_commit_groups_total", "Transactions that the commit pipeline committed.")
	groupsAgain     = counter("pawl_commit_reruns_total", "Runs of a group that another transaction won.")
	groupsLost      = counter("pawl_commit_connections_lost_total", "Runs of a group that lost their connection to the database.")
	groupsSplit     = counter("pawl_commit_splits_total", "Groups that were split to find the command that could not be stored.")
	commandsAside   = counter("pawl_commit_aside_total", "Commands that went to the retry lane, to wait for a lock or to run a transition's own SQL.")
	scoped          = counter("pawl_scope_commands_total",
		"Attempts by the transition whose default scope the key was in, or named for all scopes that callers named, and by outcome: new, replayed, active, mismatched, expired. All but new are duplicates that were suppressed.", "scope", "outcome")
)

var commitKinds = []kind{
	commands, commandsRefused, commandsWaiting, groups, groupsAgain, groupsLost, groupsSplit, commandsAside, scoped,
}

func sendCommits(ch chan<- prometheus.Metric, s engine.PipelineStats) {
	for claim, n := range s.Claims {
		send(ch, commands, n, claim)
	}
	send(ch, commandsRefused, s.Refused)
	send(ch, commandsWaiting, s.Waiting)
	send(ch, groups, s.Groups)
	send(ch, groupsAgain, s.Again)
	send(ch, groupsLost, s.Lost)
	send(ch, groupsSplit, s.Splits)
	send(ch, commandsAside, s.Aside)
}

// namedScopes stands for the scopes that callers named, of which there may be any
// number.
const namedScopes = "named"

// sendScopes adds up the tenants.
func sendScopes(ch chan<- prometheus.Metric, list []inspect.ScopeCount) {
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
		for outcome, n := range map[string]int64{"new": s.New, "replayed": s.Replayed, "active": s.Active, "mismatched": s.Mismatched, "expired": s.Expired} {
			send(ch, scoped, n, name, outcome)
		}
	}
}
