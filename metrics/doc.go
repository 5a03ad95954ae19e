// Package metrics measures an engine for Prometheus: what it has done since its
// start, and how its keys and its sinks stand in the database. Every metric is in
// [Table], from which docs/operations.md lists them.
//
// A [Collector] registers with any registry of Prometheus' client. What a scrape
// reads from the database is bounded, never waits long, and is kept for a few
// seconds, so that however many scrape, the database is asked now and then.
//
// Counters of a node are summed over the nodes. What stands in the database is the
// same on every node: take the max of it.
package metrics
