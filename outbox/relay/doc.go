// Package relay delivers the events of the log to sinks: every event at least
// once, those of an instance in order, each sink independently of the others.
//
// # Who delivers
//
// One node at a time delivers to a sink. It holds the sink's lease, a row of
// outbox_sink: claimed_by, locked_until, and the token, which every claim counts up.
// A lease lasts by the database's clock. Its node renews it, and gives it back when it
// stops; when the node dies, another takes over within seconds.
//
// The token is a fencing token. Whatever a relay stores about a sink is one transaction
// that first locks the sink's row and finds the token unchanged. So a node that was
// frozen, and taken over meanwhile, stores nothing when it wakes up. Its last deliveries
// may arrive once more, with the ids of the first ones.
//
// # How far a sink is
//
// There is a cursor for each sink and tenant, in outbox_cursor: every event up to it is
// delivered, or is a row of outbox_dead. Events are delivered ahead of the cursor,
// several calls at once, within a window; the cursor passes what is complete. So a
// delivery writes nothing of its own, and a crash repeats no more than the window.
//
// When an operator moves a cursor, only the log of that tenant is read anew: the cursor
// keeps the sink's revision of its move, and a batch whose writer does not know that
// revision does not store it.
//
// Positions have no gaps and are in the order of the commits, so a reader misses
// nothing. Where retention has removed events that a sink has not got, the sink stops
// for that tenant, and says so.
//
// A sink's Filter says which events it gets, and Wants does where Filter cannot; the
// cursor passes the others. A filter that names what no event can have, such as an
// unknown workflow, is refused before the relay starts.
//
// # What fails
//
// No event is delivered before an earlier one of its instance. An event that fails is
// retried with a random, growing backoff, and its instance waits; the others go on.
// When the backoff is long, or the window is full of what waits, events are set aside:
// they become rows of outbox_dead with the status queued, in the same transaction in
// which the cursor passes them, and are delivered from there, still in order, before
// anything later of their instance.
//
// An event that is given up is parked: it is a dead letter, a row of the same table with
// the status waiting. An operator redrives it (queued again) or skips it. Later events
// of its instance go on without it, or wait for it, as configured; or nothing is given
// up, and the cursor waits (Block). When so many tenants are blocked that others would
// have no room, their logs are unloaded: nothing of them is in memory until the next
// attempt, and then only the one event, until it has arrived.
//
// A failure of the receiver as a whole opens the sink's circuit. It is one that the sink
// calls so, or failures of events of different instances with nothing accepted in
// between, as of a receiver that answers 500 to everything. Then one event at a time is
// tried, of each instance in turn, until one arrives. These failures are not counted, so
// nothing is given up, however long that lasts, but what the sink refuses for good
// ([sink.Permanent]): the receiver has read it.
//
// An event of a tenant and type of which none has failed in the outage, or one that was
// never tried, is tried soon, though the wait of the others has grown to a minute. When
// one arrives the circuit closes, and the failures are attributed to the events that
// fail while others arrive. As long as the events of a single instance fail, they count:
// so an outage in which only one instance has events gives up its event after the
// attempts of the policy; use HoldInstance where that must not be. The reasons are in
// docs/decisions/0007-relay.md.
//
// # Whose turn it is
//
// Tenants take turns in what is delivered next and in whose logs are read. Each has some
// room in the window, however much the others take, and a reader that waits for room
// lets others read, up to some 64. No call is kept free for a tenant: a new event waits
// for the first call that ends. The number of instances aside is bounded for the sink;
// where there are more, the tenants with the most wait.
//
// # The parts
//
// A [Relay] is a node's. It polls how all its sinks stand, in one statement, every second
// or two and when it has reason to, and takes over what no node holds. A log of which
// everything is delivered is not in memory. When it grows, as a commit or a hint says,
// its cursor is looked up by its key; what no hint tells of is found because the poll
// also asks for the sum of all heads. All tenants are passed over, in steps, only for a sink
// that was just claimed, or that had no room for all that it was told of. Each lease has a
// holder, with one goroutine that decides everything by means of a flow, which knows
// neither clock nor database nor sink. Readers of the logs, calls of the sink and the
// batches that are stored run beside it. A [Table] is for operators: it tells how the
// sinks stand, and changes that, from any node.
//
// Lock order: the row of outbox_sink, then anything else about that sink.
package relay
