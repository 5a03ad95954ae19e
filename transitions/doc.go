// Package transitions is one command's life as pure functions and values: what
// a caller asks ([Command]), its fingerprint, what an earlier attempt with the
// same key means for it ([Classify]), and what it does to an instance
// ([Decide]).
//
// Definition, instance, command and a time go in; a [Decision] comes out, as
// data: the instance after it, the audit entry, the events, the answer. Nothing
// here knows a context, a clock or a database, so that the same decision can be
// made again when a transaction has to be run again.
package transitions
