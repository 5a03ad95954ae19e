// Package relay delivers events to sinks: every event at least once, the events of an instance in order, and each sink
// independently of the others.
//
// # Leases
//
// One node at a time delivers to a sink. It holds the sink's lease, a row of outbox_sink with claimed_by, locked_until
// and token. Leases expire by the database's clock. The holder renews its lease and releases it when it stops; if the
// node dies, another one takes over within seconds.
//
// Every claim increments the token, which is a fencing token: every write about a sink is one transaction that first
// locks the sink's row and checks the token. A node that was suspended and replaced therefore writes nothing after it
// resumes. Its last deliveries may be repeated with the same ids.
//
// # Cursors
//
// outbox_cursor has a cursor for each sink and tenant. Every event up to the cursor is delivered or is a row of
// outbox_dead. Concurrent calls deliver events ahead of the cursor, within a window, and the cursor passes completed
// positions. A delivery causes no write of its own, and a crash repeats at most the window.
//
// When an operator moves a cursor, only the log of that tenant is read again: the cursor stores the sink's revision of
// the move, and batches of a writer that does not know this revision skip it.
//
// Positions have no gaps and follow the commit order, so readers miss nothing. If retention removed events that a sink
// has not received, delivery for this tenant stops with a failure. Filter and Wants select the events of a sink; the
// cursor passes all others.
//
// # Failures
//
// No event is delivered before an earlier one of its instance. A failed event is retried with randomized exponential
// backoff while its instance waits and others continue. If the backoff is long, or waiting events fill the window,
// events are deferred: they become rows of outbox_dead with the status queued, in the transaction in which the cursor
// passes them. They are delivered from there, in order, before later events of their instance.
//
// An event without attempts left becomes a dead letter, a row with the status waiting, until an operator redrives or
// skips it. Depending on the policy, later events of its instance are delivered (Park) or wait (HoldInstance), or the
// event is retried without limit while the cursor waits (Block). If many tenants are blocked, their logs are unloaded:
// until the next attempt they use no memory, and then only the blocking event is loaded.
//
// A failure of the whole receiver opens the sink's circuit. The sink reports it, or events of different instances fail
// without a success in between. The circuit then tries one event at a time, of each instance in turn, until one is
// accepted. These failures do not count as attempts, except permanent ones ([sink.Permanent]). Untried events, and
// events of a tenant and type that has not failed in the outage, are tried with a short backoff. An accepted event
// closes the circuit; from then on failures are attributed to the events. Failures of a single instance always count.
// docs/decisions/0007-relay.md explains why.
//
// # Fairness
//
// Tenants are served round-robin, for deliveries and for reading logs, and each has a share of the window. The number
// of deferred instances per sink is bounded; beyond it, the tenants with the most deferred instances wait.
//
// # Structure
//
// Each node has a [Relay]. It polls the state of all sinks in one statement, every second or two and after
// notifications, and claims free ones. Logs without undelivered events are not in memory. Each lease has a holder,
// whose single goroutine makes all decisions in a flow, which depends on neither clock, database nor sink. Log readers,
// sink calls and store batches run concurrently. A [Table] reads and changes the state of sinks for operators, from any
// node.
//
// Lock order: the row of outbox_sink, then anything else of that sink.
package relay
