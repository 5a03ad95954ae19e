// Package relay delivers the events of the log to sinks: every event at least
// once, those of an instance in order, each sink for itself.
//
// # Who delivers
//
// Of all nodes one at a time delivers to a sink. It holds the sink's lease, a row
// of outbox_sink: claimed_by, locked_until, and the token, which every claim
// counts up. A lease lasts by the database's clock. The node prolongs it while it
// lives, and gives it back when it stops; when it dies, another takes over within
// seconds.
//
// The token is the fencing token. Whatever a relay writes about a sink is one
// transaction that first locks the sink's row and finds the token unchanged. So a
// node that was frozen, and taken over meanwhile, writes nothing when it wakes
// up. Its last deliveries may arrive once more; they have the ids of the first
// ones.
//
// # How far a sink is
//
// A cursor for each sink and tenant, in outbox_cursor: every event up to it is
// delivered, or is a row of outbox_dead. Events are delivered ahead of the
// cursor, several calls at once, within a window; the cursor follows over what is
// complete. So a delivery writes nothing of its own, and a crash repeats no more
// than the window.
//
// When a person moves a cursor, the log of that tenant alone is read anew: the
// cursor keeps the sink's revision of its move, and a letter whose writer does not
// know of that revision does not store it.
//
// Positions have no gaps and are in the order of the commits, so there is nothing
// that a reader could miss. Where events are not there any more that a sink has
// not got, it stops for that tenant, and says so.
//
// A sink's Filter says which events it gets, and Wants does where that cannot; the
// cursor goes over the others. A filter that names what no event can have, a workflow
// that is not known or an attribute that nobody declares, is refused before the relay
// starts.
//
// # What fails
//
// Nothing of an instance is delivered before what comes earlier. An event that
// fails is tried again after a random, growing time, and its instance waits; the
// others go on. When that takes long, or the window is full of what waits, these
// events are put aside: they become rows of outbox_dead with the status queued,
// in the same transaction in which the cursor passes them, and are delivered from
// there, still in order, before anything later of their instance.
//
// An event that is given up becomes a dead letter: the same table, status waiting.
// A person redrives it (queued again) or skips it. Later events of its instance
// go on without it, or wait behind it, as configured; or nothing is given up, and
// the cursor waits. When so many tenants wait that others would have no room, they
// are let go: nothing of them is in memory until it is time to try again, and then
// only the one event, until it has arrived.
//
// A failure of the receiver as a whole stops the sink: one that the sink calls so, or
// failures of events of different instances with nothing accepted in between, as of a
// receiver that answers 500 to everything, or hangs. Then one event at a time is tried,
// of each instance in turn, until one arrives; nothing is counted, so nothing is given
// up, however long it lasts. What the sink refuses for good ([sink.Permanent]) is given
// up all the same: the receiver has read it.
//
// A receiver may take nothing of one tenant, or of one type, alone. So an event of a
// tenant and type of which none has failed in the outage is tried soon, though the wait
// of the others has grown to a minute. So is an event that was never tried; when it fails
// as an event that makes nobody else wait longer. And where the window is full of what the
// receiver does not take, without the sink calling it the receiver's failure, a window of
// that is put aside for each attempt that fails, to see what is behind it. When one
// arrives the circuit closes: an event that fails while others arrive counts.
//
// As long as the events of a single instance fail, nobody can tell. They count: or a
// bad event would stop its instance for good where hardly anything else happens. So
// an outage in which only one instance has anything to deliver gives up its event
// after the attempts of the policy; have it held (HoldInstance) where that must not
// be.
//
// A failure that the sink calls the receiver's may be an event's that makes it fall
// over. It counts against the event when others arrive afterwards. One that fails like
// that while others arrive costs them a single probe, made at once, and the next time
// nothing.
//
// # Whose turn it is
//
// Tenants take turns in what is delivered next and in whose rows are read. Each has
// some room in the window, however much the others take, and a reader that waits for
// room lets others read, up to some 64. Nothing is kept free for them among the calls: a
// new event waits for the first call that ends. How many instances may be aside is
// bounded for the sink; where there are more, the tenants with the most wait.
//
// # The parts
//
// A [Relay] is a node's: every second or two, and when it has reason to, it looks how
// all its sinks stand, in one statement, and takes over what nobody holds. Each
// lease is a tenure, with one goroutine that decides everything by means of a
// flow, which knows neither clock nor database nor sink. Readers of the logs, calls
// and letters to the database run beside it. A [Table] is for people: it tells
// how the sinks stand, and changes that, from any node.
//
// Lock order: the row of outbox_sink, then anything else about that sink.
package relay
