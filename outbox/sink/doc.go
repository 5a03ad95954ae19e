// Package sink defines the interface between the outbox's relay and receivers of events: [Sink],
// its failures, and the ids by which receivers recognize repetitions.
//
// # Guarantees
//
// Delivery is at least once: an event is delivered until the sink reports that the receiver has it.
// Events of an instance arrive in log order. A repetition may follow a later event, but has the
// same id ([MessageID]); a receiver that remembers ids processes each event once, in order.
// Operators can break this order: a redriven dead letter follows later events of its instance
// unless the sink holds these, and moving a cursor forward skips events.
//
// # Responsibilities
//
// The relay reads the log, schedules deliveries and retries, counts attempts, parks undeliverable
// events and stores the cursor. A sink makes one attempt and reports the result of each event. It
// never retries and keeps no state except its connection.
//
// Packages webhook, jetstream, watermill and file implement sinks; package sinktest tests any
// other.
package sink
