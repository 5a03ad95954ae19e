// Package decide is one command's life as pure functions and values: its
// fingerprint ([Prepare]), what an earlier attempt with the same key means for it
// ([Classify]), what it does to an instance ([Decide]), and, where it goes on in
// flight, what becomes of it after an attempt ([InFlight], [Verdict]).
//
// Definition, instance, command and a time go in; a [Decision] comes out, as data:
// the instance after it, the audit entry, the events, the answer. Nothing here knows
// a clock or a database, so that the same decision can be made again when a
// transaction has to be run again.
package decide
