// Package sink is what the outbox's relay hands events to, and what every
// receiver of them has in common: the interface [Sink], the failures and what
// follows from them, and the ids by which a receiver recognizes a repetition.
//
// # What is promised
//
// Delivery is at least once: an event is handed over until its sink has said
// that the receiver has it. Events of one instance arrive in the order of the
// log; a repetition can follow a later event, but it bears the id of the first
// ([MessageID]), so that a receiver that remembers ids has each event once and
// in order. The exception is what an operator does: a dead letter that is redriven
// comes after the later events of its instance, unless the sink is configured to
// hold these, and a cursor that is moved forward leaves events out.
//
// # Who does what
//
// The relay reads the log, decides what is delivered at the same time, waits
// between attempts, counts them, parks what cannot be delivered, and keeps the
// cursor. A sink makes one attempt and says exactly what became of each event.
// It never retries on its own account, and it keeps nothing but its connection.
//
// Sinks of this kind are in the packages webhook, jetstream, watermill and
// file; package sinktest tries any other.
package sink
