// Package inspect defines the queries of readers and operators and their results: lists, counts and views of instances; keys, retention,
// sinks and dead letters; stuck and paused work. The engine reads them from the database; the API, the command line and the metrics present
// them.
package inspect
