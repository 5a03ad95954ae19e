package monitoring

// Row is a part of the dashboard.
type Row struct {
	Title  string
	Panels []Panel
}

// Panel shows queries over time, or their newest values.
type Panel struct {
	Title string
	Unit  string // as Grafana names it
	Stat  bool   // the newest value, which is good at 0 where Alarm says so
	Alarm bool
	Lines []Line
	Empty string // why a healthy service may have nothing to show
}

// Line is a query for Prometheus, and what its results are called: {{label}} stands for the value of a label. The dashboard
// lets people choose whose metrics they see (the label job), which the queries leave out here.
type Line struct{ Query, Legend string }

// The units, as Grafana names them.
const (
	number    = "short"
	perSecond = "ops"
	seconds   = "s"
	inBytes   = "bytes"
	share     = "percentunit"
)

// Unshown are the metrics that no panel shows, and why.
var Unshown = map[string]string{
	"pawl_inflight_polls_total":       "it counts by the clock; what matters is pawl_keys_oldest_due_seconds",
	"pawl_relay_polls_total":          "it counts by the clock; what matters is pawl_sink_lag_seconds",
	"pawl_auth_api_key_looks_total":   "it counts by the clock; those that fail are shown",
	"pawl_auth_key_reads_total":       "it counts by the clock; those that fail, and the age of the keys, are shown",
	"pawl_retention_batches_total":    "it counts by the clock; what waits for retention is shown",
	"pawl_instances_estimated":        "it says how exact the counts of instances are, for who computes with them",
	"pawl_sink_parked_events_total":   "pawl_sink_dead_letters shows what is left of it for an operator",
	"pawl_sink_failed_attempts_total": "pawl_relay_failed_attempts_total has the same by node, and pawl_sink_failures whether they go on",
}

// one is a panel with one line.
func one(title, unit, query, legend string) Panel {
	return Panel{Title: title, Unit: unit, Lines: []Line{{query, legend}}}
}

// now is a panel with the newest value.
func now(title, unit, query string) Panel {
	return Panel{Title: title, Unit: unit, Stat: true, Lines: []Line{{query, ""}}}
}

// wrong is a panel with the newest value of what should be 0.
func wrong(title, unit, query string) Panel {
	p := now(title, unit, query)
	p.Alarm = true
	return p
}

// several is a panel with a line for each pair of a query and a legend.
func several(title, unit string, lines ...Line) Panel {
	return Panel{Title: title, Unit: unit, Lines: lines}
}

// Rows are the dashboard, from what everybody looks at first to what explains it.
var Rows = []Row{
	{"At a glance", []Panel{
		now("Commands", perSecond, `sum(rate(pawl_commands_total[$__rate_interval]))`),
		now("99 % of requests take less than", seconds,
			`histogram_quantile(0.99, sum by (le) (rate(pawl_http_request_duration_seconds_bucket[$__rate_interval])))`),
		wrong("Commands refused", perSecond, `sum(rate(pawl_commands_refused_total[$__rate_interval]))`),
		wrong("Wait for an operator", number, `max(pawl_keys_stuck)`),
		wrong("Oldest work that is due", seconds, `max(pawl_keys_oldest_due_seconds)`),
		wrong("Sinks behind by", seconds, `max(pawl_sink_lag_seconds)`),
		wrong("Dead letters", number, `sum(max by (sink) (pawl_sink_dead_letters))`),
		wrong("Dead messages", number, `max(pawl_inbox_dead_messages)`),
	}},
	{"Commands", []Panel{
		one("Commands by what became of their key", perSecond, `sum by (claim) (rate(pawl_commands_total[$__rate_interval]))`, "{{claim}}"),
		one("Attempts that were suppressed", share, `1 - sum by (scope) (rate(pawl_scope_commands_total{outcome="new"}[$__rate_interval]))`+
			` / sum by (scope) (rate(pawl_scope_commands_total[$__rate_interval]))`, "{{scope}}"),
		one("Keys that are used for another request", perSecond,
			`sum by (scope) (rate(pawl_scope_commands_total{outcome="mismatched"}[$__rate_interval]))`, "{{scope}}"),
	}},
	{"Commit pipeline", []Panel{
		several("Transactions, and commands in each", number,
			Line{`sum(rate(pawl_commit_groups_total[$__rate_interval]))`, "transactions a second"},
			Line{`sum(rate(pawl_commands_total[$__rate_interval])) / sum(rate(pawl_commit_groups_total[$__rate_interval]))`, "commands in each"}),
		several("The queue of each node", number,
			Line{`sum by (instance) (pawl_commands_waiting)`, "{{instance}} waiting"},
			Line{`sum by (instance) (rate(pawl_commands_refused_total[$__rate_interval]))`, "{{instance}} refused a second"}),
		several("Groups that did not go through at once", perSecond,
			Line{`sum(rate(pawl_commit_reruns_total[$__rate_interval]))`, "run again"},
			Line{`sum(rate(pawl_commit_connections_lost_total[$__rate_interval]))`, "connection lost"},
			Line{`sum(rate(pawl_commit_splits_total[$__rate_interval]))`, "split"},
			Line{`sum(rate(pawl_commit_aside_total[$__rate_interval]))`, "commands in the retry lane"}),
	}},
	{"Work in flight", []Panel{
		one("Keys by status", number, `max by (status) (pawl_keys)`, "{{status}}"),
		several("What waits", number,
			Line{`max(pawl_keys_scheduled)`, "for its time"},
			Line{`max(pawl_keys_due)`, "due"},
			Line{`max(pawl_keys_stale)`, "for a takeover"},
			Line{`max(pawl_keys_lapsed)`, "for its caller in SQL"},
			Line{`max(pawl_keys_stuck)`, "for an operator"},
			Line{`max(pawl_keys_many_attempts)`, "claimed five times or more"}),
		several("How old the oldest is", seconds,
			Line{`max(pawl_keys_oldest_in_flight_seconds)`, "in flight"},
			Line{`max(pawl_keys_oldest_due_seconds)`, "due"},
			Line{`max(pawl_keys_oldest_stale_seconds)`, "for a takeover"},
			Line{`max(pawl_keys_oldest_lapsed_seconds)`, "for its caller in SQL"}),
		several("Attempts", perSecond,
			Line{`sum by (outcome) (rate(pawl_inflight_ended_total[$__rate_interval]))`, "{{outcome}}"},
			Line{`sum(rate(pawl_inflight_retries_total[$__rate_interval]))`, "to be repeated"},
			Line{`sum(rate(pawl_inflight_stuck_total[$__rate_interval]))`, "left to an operator"},
			Line{`sum(rate(pawl_inflight_returned_total[$__rate_interval]))`, "given back"}),
		one("99 % of the attempts of an activity take less than", seconds,
			`histogram_quantile(0.99, sum by (le, workflow, activity) (rate(pawl_activity_duration_seconds_bucket[$__rate_interval])))`,
			"{{workflow}} {{activity}}"),
		{Title: "Attempts that reached their time limit", Unit: perSecond, Empty: "none has reached it", Lines: []Line{
			{`sum by (workflow, activity) (rate(pawl_activity_duration_seconds_count{outcome="timed_out"}[$__rate_interval]))`,
				"{{workflow}} {{activity}}"}}},
		several("Leases", perSecond,
			Line{`sum(rate(pawl_inflight_claimed_total[$__rate_interval]))`, "claimed"},
			Line{`sum(rate(pawl_inflight_taken_over_total[$__rate_interval]))`, "taken over"},
			Line{`sum(rate(pawl_inflight_heartbeats_total[$__rate_interval]))`, "prolonged"},
			Line{`sum(rate(pawl_inflight_leases_lost_total[$__rate_interval]))`, "lost"}),
		several("Workers of each node", number,
			Line{`sum by (instance) (pawl_inflight_busy_workers)`, "{{instance}} busy"},
			Line{`sum by (instance) (pawl_inflight_leases)`, "{{instance}} leases"}),
	}},
	{"Instances and messages", []Panel{
		one("Open instances", number,
			`sum by (workflow, state) (max by (workflow, definition, state) (pawl_instances{open="true"}))`, "{{workflow}} {{state}}"),
		{Title: "Ended instances", Unit: number, Empty: "none has ended yet", Lines: []Line{
			{`sum by (workflow, state) (max by (workflow, definition, state) (pawl_instances{open="false"}))`, "{{workflow}} {{state}}"}}},
		{Title: "Versions that not every node knows", Unit: number, Empty: "every node knows every version", Lines: []Line{
			{`max by (workflow, definition) (pawl_version_nodes{known="false"}) > 0`, "{{workflow}} {{definition}}: nodes without it"}}},
		{Title: "Versions that new instances begin with", Unit: number, Lines: []Line{
			{`max by (workflow, definition) (pawl_version_begins) == 1`, "{{workflow}} {{definition}}"}}},
		several("Messages that were not consumed", number,
			Line{`max(pawl_inbox_dead_messages)`, "wait for an operator"},
			Line{`max(pawl_inbox_oldest_dead_message_seconds)`, "seconds since the oldest"}),
	}},
	{"Sinks", []Panel{
		one("Transitions behind", number, `max by (sink) (pawl_sink_lag_transitions)`, "{{sink}}"),
		one("Age of the oldest that is not there yet", seconds, `max by (sink) (pawl_sink_lag_seconds)`, "{{sink}}"),
		one("Events delivered", perSecond, `max by (sink) (rate(pawl_sink_delivered_events_total[$__rate_interval]))`, "{{sink}}"),
		several("Events that are not delivered", number,
			Line{`max by (sink) (pawl_sink_dead_letters)`, "{{sink}} wait for an operator"},
			Line{`max by (sink) (pawl_sink_aside_events)`, "{{sink}} tried again"}),
		several("Tenants behind", number,
			Line{`max by (sink) (pawl_sink_behind_tenants)`, "{{sink}} behind"},
			Line{`max by (sink) (pawl_sink_stuck_tenants)`, "{{sink}} stuck"}),
		several("State of each sink", number,
			Line{`max by (sink) (pawl_sink_served)`, "{{sink}} served"},
			Line{`max by (sink) (pawl_sink_paused)`, "{{sink}} paused"},
			Line{`max by (sink) (pawl_sink_failures)`, "{{sink}} failures in a row"}),
		several("Deliveries of each node", perSecond,
			Line{`sum by (instance) (rate(pawl_relay_delivered_events_total[$__rate_interval]))`, "{{instance}} delivered"},
			Line{`sum by (instance) (rate(pawl_relay_failed_attempts_total[$__rate_interval]))`, "{{instance}} failed"},
			Line{`sum by (instance) (rate(pawl_relay_parked_events_total[$__rate_interval]))`, "{{instance}} given up"}),
		several("Who delivers", perSecond,
			Line{`sum(rate(pawl_relay_claimed_total[$__rate_interval]))`, "sinks claimed"},
			Line{`sum(rate(pawl_relay_taken_over_total[$__rate_interval]))`, "taken over"},
			Line{`sum(rate(pawl_relay_leases_lost_total[$__rate_interval]))`, "lost"}),
		one("Writes about sinks", perSecond, `sum(rate(pawl_relay_writes_total[$__rate_interval]))`, "writes"),
	}},
	{"Retention", []Panel{
		one("Keys seen to", perSecond, `sum by (outcome) (rate(pawl_retention_keys_total[$__rate_interval]))`, "{{outcome}}"),
		several("What waits for it", number,
			Line{`max(pawl_keys_expired_waiting)`, "answers"},
			Line{`max(pawl_keys_forgotten_waiting)`, "tombstones"},
			Line{`max(pawl_keys_oldest_expired_seconds)`, "seconds since the oldest"}),
		several("Whether it is done", number,
			Line{`max(pawl_retention_served)`, "a node does it"},
			Line{`sum(rate(pawl_retention_failures_total[$__rate_interval]))`, "failures a second"},
			Line{`sum(increase(pawl_retention_dropped_partitions_total[1d]))`, "partitions dropped in a day"}),
		one("Size of the partitions", inBytes, `max by (table) (pawl_partition_bytes)`, "{{table}}"),
		several("Partitions", number,
			Line{`max by (table) (pawl_partitions)`, "{{table}}"},
			Line{`max by (table) (pawl_partitions_held)`, "{{table}} held past their age"}),
	}},
	{"Migrations", []Panel{
		several("Migrations of instances", number,
			Line{`max(pawl_migration_left_instances)`, "instances left"},
			Line{`max(pawl_migrations_held)`, "migrations held up"},
			Line{`sum(rate(pawl_migration_failures_total[$__rate_interval]))`, "failures a second"}),
		one("Instances migrated", perSecond, `sum by (outcome) (rate(pawl_migrated_instances_total[$__rate_interval]))`, "{{outcome}}"),
	}},
	{"HTTP", []Panel{
		one("Requests by status", perSecond, `sum by (code) (rate(pawl_http_requests_total[$__rate_interval]))`, "{{code}}"),
		one("Requests by route", perSecond, `topk(10, sum by (route) (rate(pawl_http_requests_total[$__rate_interval])))`, "{{route}}"),
		one("99 % take less than, by route", seconds,
			`histogram_quantile(0.99, sum by (le, route) (rate(pawl_http_request_duration_seconds_bucket[$__rate_interval])))`, "{{route}}"),
		several("Connections", number,
			Line{`sum by (instance) (pawl_http_connections)`, "{{instance}} open"},
			Line{`sum by (instance) (rate(pawl_http_connections_refused_total[$__rate_interval]))`, "{{instance}} refused a second"},
			Line{`sum by (instance) (rate(pawl_http_connections_evicted_total[$__rate_interval]))`, "{{instance}} evicted a second"}),
		several("Memory of requests and streams", inBytes,
			Line{`sum by (instance) (pawl_http_memory_held_bytes)`, "{{instance}} held"},
			Line{`sum by (instance) (pawl_http_memory_limit_bytes)`, "{{instance}} at most"}),
		one("Requests refused for want of memory", perSecond, `sum by (instance) (rate(pawl_http_memory_refused_total[$__rate_interval]))`,
			"{{instance}}"),
		{Title: "TLS certificate ends in", Unit: seconds, Empty: "TLS ends before Pawl", Lines: []Line{
			{`min by (instance) (pawl_tls_certificate_end_timestamp_seconds > 0) - time()`, "{{instance}}"}}},
		one("Certificates that could not be used", number, `sum by (instance) (increase(pawl_tls_reload_failures_total[1d]))`,
			"{{instance}} in a day"),
	}},
	{"Who calls", []Panel{
		one("Callers refused", perSecond, `sum by (reason) (rate(pawl_auth_refused_total[$__rate_interval]))`, "{{reason}}"),
		several("Keys of the identity provider", number,
			Line{`min by (instance) (pawl_auth_keys)`, "{{instance}} keys"},
			Line{`sum by (instance) (increase(pawl_auth_key_failures_total[1h]))`, "{{instance}} reads failed in an hour"}),
		one("Age of the keys of the identity provider", seconds, `time() - min by (instance) (pawl_auth_keys_read_seconds)`, "{{instance}}"),
		several("API keys", number,
			Line{`sum by (instance) (pawl_auth_api_keys)`, "{{instance}} remembered"},
			Line{`sum by (instance) (rate(pawl_auth_api_key_lookups_total[$__rate_interval]))`, "{{instance}} looked up a second"},
			Line{`sum by (instance) (rate(pawl_auth_api_key_look_failures_total[$__rate_interval]))`, "{{instance}} looks failed a second"}),
	}},
	{"Nodes", []Panel{
		one("CPU", number, `sum by (instance) (rate(process_cpu_seconds_total[$__rate_interval]))`, "{{instance}} cores"),
		one("Memory", inBytes, `sum by (instance) (process_resident_memory_bytes)`, "{{instance}}"),
		one("Goroutines", number, `sum by (instance) (go_goroutines)`, "{{instance}}"),
		one("Reads for a scrape that failed", perSecond, `sum by (of) (rate(pawl_scrape_read_failures_total[$__rate_interval]))`, "{{of}}"),
	}},
}
