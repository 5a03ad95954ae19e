// Package inspect is what readers and operators ask of an engine, and the answers:
// lists, counts and views of instances; keys, retention, sinks and their dead
// letters; what is stuck, paused, or broken. Its types are values: the engine reads
// them from the database, and the API, the command line and the metrics show them.
package inspect
