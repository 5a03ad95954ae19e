// Package fold plays a log of traffic fines against the state machine of a
// fine, event by event, in one goroutine, in memory. It is the reference that a
// run of package fines through Pawl is compared with: what each case ends as,
// and what was refused and why.
//
// Its value is that it shares nothing with what it checks: it imports the
// standard library alone, reads the log by itself and states the rules a second
// time.
//
// An event that is refused leaves its case as it was, and the next one is tried
// all the same.
package fold
