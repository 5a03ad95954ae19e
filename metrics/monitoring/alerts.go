package monitoring

import (
	"fmt"
	"strings"
)

// Alert is a rule for Prometheus. The thresholds are where most installations can begin.
type Alert struct {
	Name    string
	Query   string // gives something when the alert is to fire
	For     string // how long it has to be so; "" for a single look
	Urgent  bool   // somebody is to be woken: callers notice, or soon will
	Summary string // what is wrong; {{ $labels.x }} stands for a label's value
	Do      string // what to do first
	Runbook string // the title in docs/operations.md that tells the rest
}

// Alerts are all of them.
var Alerts = []Alert{
	{"PawlStuckCommands", `max(pawl_keys_stuck) > 0`, "5m", false, "commands wait for an operator",
		"Find out at the other side whether it has happened, then resolve, retry or abandon each of pawl ops stuck.", "Stuck key"},
	{"PawlStaleClaims", `max(pawl_keys_oldest_stale_seconds) > 120`, "", true, "leases have run out and no node takes over",
		"Start a node with workers that knows the workflow.", "A node that died"},
	{"PawlLapsedClaims", `max(pawl_keys_oldest_lapsed_seconds) > 24 * 3600`, "", false, "a caller in SQL left a key that it had claimed",
		"Let the program that claimed it run again, or end the command with pawl.fail.", "Claims in SQL that nobody ended"},
	{"PawlDueWorkWaits", `max(pawl_keys_oldest_due_seconds) > 300`, "", true, "work is due and no node begins it",
		"See whether all workers are busy, or no node knows the workflow and its version.", "Work that is not begun"},
	{"PawlVersionUnknown", `max by (workflow, definition) (pawl_instances{open="true"}) > 0 and on (workflow, definition)` +
		` max by (workflow, definition) (pawl_version_nodes{known="true"}) == 0`, "5m", false,
		"no node knows version {{ $labels.definition }} of {{ $labels.workflow }}, and instances of it are open",
		"Start a build that has it, beside the newer ones, and see pawl ops versions.", "Work that is not begun"},
	{"PawlManyAttempts", `max(pawl_keys_many_attempts) > 10`, "15m", false, "activities fail again and again",
		"Read the newest failures with the query under many attempts, and mend the other side.", "Work that is not begun"},
	{"PawlSinkLags", `max by (sink) (pawl_sink_lag_seconds) > 300 unless max by (sink) (pawl_sink_paused) == 1`, "", false,
		"{{ $labels.sink }} is five minutes behind", "Ask pawl ops sinks list whether it is served, failing or blocked.", "Growing lag"},
	{"PawlSinkBlocked", `max by (sink) (pawl_sink_stuck_tenants) > 0`, "", false, "a cursor of {{ $labels.sink }} cannot go on",
		"Read why in pawl ops sinks show, then redrive, skip or move.", "Growing lag"},
	{"PawlSinkUnserved", `max by (sink) (pawl_sink_served) == 0 unless max by (sink) (pawl_sink_paused) == 1`, "2m", true,
		"no node delivers to {{ $labels.sink }}", "Start a node that has the sink, or give the sink up with pawl ops sinks forget.",
		"Growing lag"},
	{"PawlDeadLetters", `max by (sink) (pawl_sink_dead_letters) > 0`, "", false, "{{ $labels.sink }} has not got everything",
		"Read why with pawl ops sinks dead, mend the receiver, then redrive or skip.", "Dead letters"},
	{"PawlDeadMessages", `max(pawl_inbox_dead_messages) > 0`, "", false, "messages were not consumed",
		"Read why with pawl ops inbox list, then retry or discard them.", "Poisoned message"},
	{"PawlKeysReused", `sum by (scope) (increase(pawl_scope_commands_total{outcome="mismatched"}[15m])) > 0`, "", false,
		"a client of {{ $labels.scope }} uses keys twice", "Tell the client: what it meant with the second request is not done.",
		"Keys that are used twice"},
	{"PawlRetentionBehind", `max(pawl_keys_oldest_expired_seconds) > 6 * 3600`, "", false, "what has expired is not removed",
		"Ask pawl ops retention which node does it, and look for transactions that stay open.", "Retention behind"},
	{"PawlRetentionUnserved", `max(pawl_retention_served) == 0`, "10m", false, "no node does retention",
		"See in the nodes' logs why none does: it is off on each, or fails.", "Retention behind"},
	{"PawlPartitionsHeld", `max by (table) (pawl_partitions_held) > 2`, "", false, "old partitions of {{ $labels.table }} cannot go",
		"Ask pawl ops retention who still needs them.", "Disk growing"},
	{"PawlMigrationHeld", `max(pawl_migrations_held) > 0`, "15m", false, "a migration of instances waits",
		"Read in pawl ops migrations what for: a node without the version, or activities.", "Migration held up"},
	{"PawlMigrationStalls", `max(pawl_migration_left_instances) > 0 unless max(pawl_migrations_held) > 0` +
		` unless sum(increase(pawl_migrated_instances_total[15m])) > 0`, "5m", false, "a migration of instances makes no progress",
		"Start a node that has both versions and the plan, and read in the nodes' logs why it fails.", "Migration held up"},
	{"PawlMigrationRefuses", `sum(increase(pawl_migrated_instances_total{outcome="rejected"}[1h])) > 0`, "", false,
		"the plan of a migration does not take some instances",
		"Read the reasons in pawl ops migrations -o json: those instances stay on the old version.", "Migration held up"},
	{"PawlMetricsMissing", `absent(pawl_keys_stuck) or absent(pawl_retention_served)` +
		` or sum by (of) (increase(pawl_scrape_read_failures_total[10m])) > 5`, "5m", true,
		"nobody can tell how everything stands, and other rules are silent",
		"See on Prometheus' page of targets whether nodes are scraped, and in their logs why reads fail.", "Missing metrics"},
	{"PawlOverloaded", `sum(rate(pawl_commands_refused_total[5m])) > 0`, "5m", true, "commands are refused because the queue is full",
		"Look for a transaction that holds locks; bound the tenants with --rate.", "Overload"},
	{"PawlDatabaseUnreachable", `sum(increase(pawl_scrape_read_failures_total[5m])) > 3` +
		` or sum(rate(pawl_commit_connections_lost_total[5m])) > 1`, "", true, "nodes lose the database",
		"See whether PostgreSQL is up and has connections left; nodes come back by themselves.", "Failover"},
	{"PawlErrors", `sum(rate(pawl_http_requests_total{code=~"5.."}[5m])) > 0.01 * sum(rate(pawl_http_requests_total[5m]))`, "5m", true,
		"one request in a hundred fails", "See which status and route it is on the dashboard, and the nodes' logs.", "Failover"},
	{"PawlCertificate", `increase(pawl_tls_reload_failures_total[1d]) > 0` +
		` or pawl_tls_certificate_end_timestamp_seconds > 0 < time() + 7 * 86400`, "10m", false,
		"the TLS certificate of {{ $labels.instance }} ends, or a new one cannot be used",
		"See in its log why, and renew the files that --tls-cert and --tls-key name.", "Certificates"},
	{"PawlIdentityProvider", `increase(pawl_auth_key_failures_total[10m]) > 3`, "", false,
		"{{ $labels.instance }} cannot fetch the keys of the identity provider",
		"Ask for the address of the keys from that machine; /readyz says until when the old keys are used.", "Identity provider"},
	{"PawlConnections", `rate(pawl_http_connections_refused_total[5m]) > 1 or rate(pawl_http_connections_evicted_total[5m]) > 1`, "10m",
		false, "clients of {{ $labels.instance }} have more connections than they may",
		"Name the proxy with --proxy, have clients keep their connections, or allow more.", "Connections"},
}

// Link leads to the runbook.
func (a Alert) Link() string { return Docs + "#" + a.Anchor() }

// Anchor is how a link names the runbook.
func (a Alert) Anchor() string { return strings.ReplaceAll(strings.ToLower(a.Runbook), " ", "-") }

// Severity is the label by which alerts are sent to people.
func (a Alert) Severity() string {
	if a.Urgent {
		return "page"
	}
	return "ticket"
}

// Rules are the alerts as a file of rules for Prometheus.
func Rules() []byte {
	var b strings.Builder
	b.WriteString("# Made of metrics/monitoring/alerts.go by: go test ./metrics/monitoring -update\ngroups:\n  - name: pawl\n    rules:\n")
	for _, a := range Alerts {
		fmt.Fprintf(&b, "      - alert: %s\n        expr: %s\n", a.Name, yaml(a.Query))
		if a.For != "" {
			fmt.Fprintf(&b, "        for: %s\n", a.For)
		}
		fmt.Fprintf(&b, "        labels: {severity: %s}\n        annotations:\n", a.Severity())
		for _, note := range [][2]string{{"summary", a.Summary}, {"description", a.Do}, {"runbook_url", a.Link()}} {
			fmt.Fprintf(&b, "          %s: %s\n", note[0], yaml(note[1]))
		}
	}
	return []byte(b.String())
}

// yaml is a text in single quotes, in which nothing has a meaning but they themselves.
func yaml(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
