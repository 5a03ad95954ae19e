// Package commit is the commit pipeline: it turns commands into transitions, many in one transaction.
//
// All committers take from one queue. A committer executes each group on one connection: it takes all waiting commands, commits
// them together and answers them, while the next group gathers. Groups therefore grow under load and have one command when
// idle, without a timer, except if other nodes write the same logs; see siblings. The commands of one instance are processed by one
// committer at a time and keep their order.
//
// # Limits
//
// The waiting time in the queue is limited, measured by the rate at which commands are taken; further commands are refused before anything
// is spent on them. Commands in the retry lane count against the same limits of number and bytes. A caller whose context ends removes its
// command. A group counts the data that it reads and writes; commands that do not fit go into the next group.
//
// # What the database decides
//
//   - The primary key of command decides which of two attempts with one key wins. The loser's transaction fails, runs again and
//     finds the winner.
//   - The primary key of instance decides natural uniqueness in the same way; that of audit does so if the instance has moved to
//     another bucket.
//   - The version guards every update of an instance.
//   - The row lock on the log's last position orders transitions and numbers them without a gap. It is taken last.
//
// # Lock order
//
// Instances by id, commands by scope and key, logs by tenant. Each kind goes through the tenants in order before the next kind
// begins. Statements on commands have an order too: disarmed timers, new commands, requests to stop, then updates of commands in
// flight. queueStates and queueWrites keep this order, and so do the functions of the SQL contract. Workers lock the row of a command in
// flight only for one short statement that waits for no lock.
//
// Other writers of the two tables cannot be in a deadlock with a group:
//
//   - Claims and heartbeats, the end of a pause, pawl.purge and retention's abandoning of work that no node knows use SKIP LOCKED.
//   - A request to stop, and an operator's change of a dead message (after its own row), wait for one command's row and lock
//     nothing after it.
//
// Like pawl.purge, retention ends an abandoned command without Decide; see docs/internals/tables.md. It locks the command before the
// instance, against the order, and therefore never waits. It inserts a key that is derived from the instance and its version, so only
// another node abandoning the same command could insert it, and that node does not get the command's row.
//
// # How a group runs
//
// [Pipeline.Do] queues a command. A committer takes it; runner.run executes the group through runner.attempt and runner.many, or
// runner.one for a single command. group.decideOne asks decide.Classify for the state of the key, and queueStates writes it.
//
// A statement has the rows of all tenants of the group as arrays; in a group of one tenant the tenant is a scalar. One builder
// writes both forms. [Limits].OneTenantPerStatement separates tenants.
//
// A group of several commands takes two round trips. The first begins the transaction, locks the instances and looks up the keys. After
// the decisions in memory the second writes everything and commits. No lock waits for the client after the second message is
// sent, and the lock on the log is only held from there to the commit.
//
// Keys are not looked up while commands are new: the insert of a known key fails, and the group runs again with a look-up. After a group
// of replays only, the next group looks up its keys first, and locks nothing if it consists of replays too.
//
// A group of one needs one statement: it reads without a lock, and writes with a statement in which the write of each table feeds the next,
// in lock order. If the instance changed in between, the guarded update finds no row, nothing is written, and the command runs again with
// locks. A creation does not read: its constraints decide. Commands that start an activity or plan other commands are written like a group
// of several. An instance with a command in flight is locked, because retention may change that relation without a new version.
//
// The commands of one list are executed in order on each instance: after a temporary failure the later ones of that instance
// fail with its code.
//
// In a caller's own transaction rows get a provisional position. A deferred trigger numbers them at the commit, updates each log
// once, and makes the transaction durable.
//
// A command in flight passes through the pipeline at its start and with each outcome of a worker; in between its row belongs to
// the holder of the lease. An outcome names its attempt, and is written only if that is still the newest; see flight.go, and
// command.go of internal/kernel/store.
//
// # Failures
//
// No committer waits for a lock that may be held for long: instances are locked with SKIP LOCKED, and waiting for another
// transaction's key is limited by lock_timeout. Commands that do not get a lock go to the retry lane, with every later command of the
// same route, until they succeed or have waited too long.
//
//   - Another transaction won: the group runs again.
//   - The connection is lost, and the outcome of COMMIT may be unknown: the group runs again and finds stored results by key. Attempts
//     that such a commit may have leased are not started; package inflight looks for them and releases them.
//   - A lock was not granted: the retry lane.
//   - Any other error is caused by one command. The group is halved until that command is alone.
//
// An error in a workflow's own SQL fails only its command, except serialization failures and deadlocks. The session is then restored.
package commit
