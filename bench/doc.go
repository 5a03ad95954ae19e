// Package bench measures the engine against a floor and a ceiling, all in one run on one server, so that the ratios are comparable between
// machines.
//
// The floor is a careful program without an engine: one transaction for each command, statement by statement. The ceiling is the rate of
// the database for the same rows in sets of a hundred, already decided. Between them are the engine's own calls, and REST and WebSocket
// over real sockets. Callers, server and PostgreSQL share the machine.
//
// The floor writes the engine's own rows, which are wide. The lean floor writes what a team would write for one workflow by hand: four
// tables, six statements for each command.
//
// # A round
//
// Every scenario runs once in each round, in the same order, so that drift of the machine affects all of them. Each starts with a
// checkpoint and empty tables, which are filled with the same orders by an engine and then vacuumed and analyzed. Autovacuum is off. So all
// pages that a scenario changes were changed since the checkpoint, and none is written to the log as a full page: the figures are those
// between checkpoints.
//
// The callers warm up and are measured; then every connection is closed, because a backend reports its counters at the latest when it ends.
// Statements come from pg_stat_statements if the server has it, transactions from pg_stat_database, the write-ahead log from its position,
// and the processor time of this program and the server's processes from /proc. Each is divided by the commands of warm-up and measurement,
// and so includes a small part of the connection set-up.
//
// At the end the rows are counted: each transition with its event, its audit row and its command. A scenario that did not commit its
// commands fails the run.
//
// # The work
//
// The command is a transition of an order, with about 140 bytes of payload and 250 of data, that changes the state and the index of states.
// Callers have instances of their own, except in the hot scenarios, in which all share one. Floor and ceiling write rows of the same size
// as the engine; a test compares them. A relay's backlog consists of the events that exist when an engine with a sink starts.
//
// # Overload
//
// First closed-loop callers determine the sustainable rate. Then commands arrive at a multiple of it, open loop: each from a free caller or
// a new one. At the end the first callers return, and retry when they are refused. Two cores cannot send ten times the REST rate that they
// serve, so there every group takes 50 ms longer in the database, in groups of 16.
//
// # Migration
//
// Nodes, which are this program started again, migrate orders to version 2: one works, the others stand by. After each share the working
// node is killed and its lease expired, so that the measurement includes takeovers. Meanwhile callers flip any of the orders at half of
// their peak, as before and after. Each order must be migrated exactly once, and the log must verify.
//
// Nodes that know only version 1 run beside one with activities of version 2. A round in which they claim any fails.
//
// # Full tables
//
// With Config.Large an engine first executes that many commands, by a clock that moves through the last two days. Then the scenarios run
// alternately on these tables and on empty ones, each time with orders that are new to the full tables. Half of a rate is open loop: calls
// are made at fixed times whether earlier ones were answered or not, and latency counts from these times.
package bench
