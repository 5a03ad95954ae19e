// Package monitoring is what people watch Pawl with: the panels of a dashboard ([Rows]) and the alerts ([Alerts]), each a table
// of queries about the metrics of package metrics. The files in deploy/ for Grafana and Prometheus, and the list of alerts in
// docs/operations.md, are made of them. A metric that is on no panel needs a reason ([Unshown]).
//
// No program imports it.
package monitoring
