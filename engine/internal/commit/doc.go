// Package commit is the commit pipeline: it turns commands into transitions,
// many in one transaction.
//
// A committer runs each group on one connection. It takes every command that waits, commits
// them together and answers them; meanwhile the next group gathers. So groups
// grow under load and are of one when idle, without a timer, except if other nodes
// write the same logs; see siblings. All committers take from one queue. The commands of
// one instance are with one of them at a time, and so keep their order.
//
// What waits for a committer is bounded in time, by the pace at which it is taken: more is refused, before
// anything is spent on it. Memory is bounded by the limits: all that waits, in the retry lane too, counts against those of the
// queue, and who leaves takes his command out. A group counts the data that it reads and
// writes; what does not fit is left unread, and goes into the next one.
//
// What the database decides:
//
//   - The primary key of command decides which of two attempts with one key
//     wins. The loser's transaction fails, runs again and finds the winner.
//   - The primary key of instance decides natural uniqueness, in the same way; and that of
//     audit, where the instance has gone on to another bucket.
//   - The version guards every update of an instance.
//   - The row lock on the log's head orders transitions and numbers them
//     without a gap. It is taken last.
//
// Lock order, always: instances by id, commands by scope and key, log heads by
// tenant. Each kind goes through the tenants in order before the next begins, and
// so does each kind of statement on commands: voided timers, new commands,
// requests to stop, then what became of commands in flight. The row of a command
// in flight is otherwise only locked by its workers, for one short statement
// that waits for nobody.
//
// Others write these two tables too, and cannot be in a deadlock with a group, for one
// of two reasons. They wait for no lock, because they take rows with SKIP LOCKED: claims
// and heartbeats, the end of a pause, pawl.purge, and retention's giving up of work that no
// node knows. Or they wait for the one row of a command and want nothing after it: a
// request to stop, and what an operator does to a dead message (its own row before that).
// The functions of the SQL contract keep to the order.
// The give-up ends a command without Decide, the only one to do so beside pawl.purge: see
// docs/internals/tables.md. It takes the command before its instance, against the order, and so
// must never wait; the key that it inserts is named by the instance and the version, so only
// another give-up of the same command could be inserting it, and that one does not get the row.
//
// A statement of a group has rows of all its tenants, as arrays; in a group of one tenant
// the tenant is a scalar beside them. [Limits].OneTenantPerStatement keeps tenants apart. Both
// forms of each statement are written by one builder.
//
// A group of several takes two round trips. First: BEGIN, lock the instances,
// look up the keys. Then, decided in memory: write everything, COMMIT. No lock
// is held across a pause of the client after the second message is sent, and
// the log's head only from there to the commit.
//
// The keys are not looked up before somebody repeats a command: the insert of the
// command fails for a key that is there, and then the group runs again and looks keys
// up. After a group in which every command was answered before, the next one looks up
// its keys first, and locks nothing if it is such a group too.
//
// How a key is claimed: [Pipeline.Do] puts its command into the queue, of which a committer takes it,
// whose runner.run takes the group through runner.attempt to runner.many, or
// runner.one; there group.decideOne asks decide.Classify what the key amounts to,
// and queueStates writes it. queueStates and queueWrites are also where the lock order
// is kept.
//
// A group of one needs no transaction of several statements: it reads without a
// lock, and writes with one statement in which each table's write feeds the
// next, in lock order. If the instance moved in between, the guarded update
// finds no row, nothing is written, and the command runs again with locks. A
// creation does not even read: its constraints decide. What goes in flight, or plans
// other commands, is written like a group of several. An instance that is tied to
// a command in flight is locked: retention may change the tie without a new version.
//
// A caller's list is done in its order on each instance: after a command that
// failed for now, the later ones of that instance fail with its code.
//
// In a caller's own transaction the rows get a provisional position. A trigger
// numbers all of them as it commits, which moves each log's head once, and makes
// the transaction durable: others are answered with what it has written.
//
// A command in flight comes through here twice or more: when it is accepted or
// planned, and with each outcome that a worker brings; in between its row belongs
// to whoever holds the lease. An outcome names its attempt, and is written only if
// that is still the newest; see flight.go, and command.go of internal/kernel/store.
//
// Nobody waits for a lock that somebody else may hold for long. Instances are
// locked with SKIP LOCKED, and waiting for another's uncommitted key is bounded
// by lock_timeout. What could not be had goes to the retry lane, with every later
// command of the same route, and is tried again there until it can be had or
// has waited long enough.
//
// The failure of a group is answered by what it means. Another transaction won:
// run again. The connection is gone, and with it perhaps the answer to COMMIT:
// ask again by key. An attempt that such a commit may have leased was never begun:
// package inflight finds out, and gives it back. A lock: the retry lane. Anything else
// is one command's fault, and halving the group finds it.
//
// What fails in the user's own SQL is its command's fault, whatever SQLSTATE it
// has, but for serialization failures and deadlocks. After it the session is
// restored to what it was.
package commit
