// Package verify detects changes of audit rows, instances and events that bypassed the engine. It recomputes each chain of audit rows
// and compares the instance and the events with the rows. docs/decisions/0012 explains what this proves. It only reads.
package verify
