// Package verify proves that nobody has changed the audit, the instances or the events
// behind the engine's back: each chain of audit rows is computed anew, and the instance
// and the events must be what the rows say. What that proves, and what not, is told in
// docs/decisions/0012. It only reads.
package verify
