// Package decide implements the life of one command with pure functions and values: its fingerprint ([Prepare]), the meaning of an earlier
// attempt with the same key ([Classify]), its effect on an instance ([Decide]), and, for a command in flight, its state after an attempt
// ([InFlight], [Verdict]).
//
// The input is a definition, an instance, a command and a time; the output is a [Decision] as data: the instance after it, the audit entry,
// the events, the answer. The package uses no clock and no database, so that the same decision can be made again when a transaction has to
// be retried.
package decide
