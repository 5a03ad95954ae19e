// Package schedule declares when commands run by themselves: by a cron expression, at an interval or on working days, in a time zone.
//
// [New] returns the workflow "schedule". A program that has it among its workflows can have schedules: each one is an instance, and its
// name is the business key. Every change of a schedule is a command with an idempotency key, an actor and an audit row. The engine
// submits the commands of the schedules that are due.
//
// The package computes times from a [Spec] and a [Policy]. It reads no clock, but the database of time zones of the system.
package schedule
