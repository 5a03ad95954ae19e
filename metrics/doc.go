// Package metrics exports metrics of an engine for Prometheus: counters since its start, and the
// state of keys and sinks in the database. [Table] lists all metrics and is the source of the table
// in the documentation.
//
// A [Collector] registers with any registry of Prometheus' client. Reads of the database during a
// scrape are bounded and cached for some seconds, so frequent scrapes do not increase the load.
//
// Sum the counters of nodes. Values from the database are the same on every node: use their max.
package metrics
