// Package bench measures the engine against a floor and a ceiling, all in one
// run on one server, so that the ratios mean something whatever the machine.
//
// The floor is what a careful program does without an engine: one transaction
// for each command, statement by statement. The ceiling is what the database
// takes when the same rows come in sets of a hundred, already decided. Between
// them stand the engine's own calls, and above the engine REST and WebSocket,
// over real sockets. Callers, server and PostgreSQL share the machine.
//
// The floor writes the engine's own rows, which are wide. The lean floor writes what a
// team would for one workflow by hand: four tables, six statements for each command.
//
// # A round
//
// Every scenario is run once in each round, in the same order, so that drift of
// the machine hits all of them. Each time it begins with a checkpoint and empty
// tables, which are filled with the same orders, placed through an engine; then
// they are vacuumed and analyzed. Autovacuum is off. So the pages that a
// scenario changes were all changed since the checkpoint, and none is written
// to the log in full: the figures are those of the time between checkpoints.
//
// The callers warm up, are measured, and then every connection is closed: a
// backend reports its counters at the latest when it ends. Statements come from
// pg_stat_statements where the server has it, transactions from
// pg_stat_database, the write-ahead log from its position, and the processor time of this
// program and the server's processes from /proc; each is divided
// by the commands of warm-up and measurement together, and so has a trace of
// the set-up of connections in it.
//
// In the end the rows are counted: each transition with its event, its audit row and
// its command. A scenario that did not commit what it claims fails the run.
//
// # The work
//
// The command is a transition of an order, with about 140 bytes of payload and
// 250 of data, that changes the state and so the index of states. Callers have
// instances of their own, but for the hot scenarios, in which all share one.
// Floor and ceiling write rows of the same size as the engine; a test compares
// them. A relay's backlog is what is there when an engine with a sink starts.
//
// # Too much
//
// First callers who wait for their answers tell which rate can be sustained. Then commands come at a multiple of it, open loop: each by a
// caller who is free, or by a new one. In the end the callers of the beginning are back, who come again when they are refused. Two cores
// cannot send ten times what they serve over REST; so there every group takes 50 ms longer in the database, in groups of 16.
//
// # Another version
//
// Orders are taken to a version 2 by nodes that are this program, started again: one does it, the others stand by. Each time a share is
// done, it is killed, and its lease ended, so that what is measured is a migration that goes on. Meanwhile callers flip any of the
// orders at half of their peak, as before and after. Each order must have been migrated once, and the log must verify.
//
// Nodes that know version 1 alone stand beside one that has activities of version 2 to do. A round in which they claim any fails.
//
// # Full tables
//
// With Config.Large an engine first does that many commands, by a clock that goes
// through the last two days. Then the same is done on these tables and on empty
// ones in turns, each time with orders that are new to the full tables. Half of a
// rate is open loop: calls are made at fixed times whether those before were
// answered or not, and latency counts from then.
package bench
