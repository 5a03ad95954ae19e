// Package doctor examines a database for problems of Pawl: its server, its settings, its tables, and the work that waits in them, each with
// a remedy.
//
// [Checks] is the table of checks. Each check is a query or a few, in a read-only transaction that waits for a lock for at most a second
// and ends after five; the state of waiting work comes from an engine that is not started. So an examination ends even if the database is
// slow or gone. Missing rights of the role are findings of their own, so that a check that could not look does not report success.
package doctor

import (
	"context"
	"fmt"
	"time"
)

// Check is a check of the database.
type Check struct {
	Name    string // stable
	Looks   string // its subject
	Warning string // condition of a warning; "" for none
	Problem string // condition of a problem; "" for none
	tables  bool   // needs the tables
	// look returns the text for a check without findings. Findings count even with an error.
	look func(ctx context.Context, x *exam) (fine string, found []Finding, err error)
}

// Checks lists all checks in their order. docs/doctor.md shows them.
var Checks = checks(&defaults)

func checks(l *limits) []Check {
	percent := func(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
	million := func(n int64) string { return fmt.Sprintf("%d million", n/1_000_000) }
	return []Check{
		{Name: connection, Looks: "whether the database answers", Problem: "it does not; the examination ends", look: lookAtConnection},
		{Name: "pooler", Looks: "PgBouncer or another pooler in transaction mode",
			Problem: "the connection string is not adapted to it", look: lookAtPooler},
		{Name: "server-version", Looks: "the version of PostgreSQL",
			Warning: "unsupported or untested", Problem: "older than 14.4", look: lookAtVersion},
		{Name: "writable", Looks: "whether the nodes can write", Problem: "a standby; `default_transaction_read_only`", look: lookAtWritable},
		{Name: "clock", Looks: "the clocks of this machine and the server",
			Warning: span(l.clock) + " difference", Problem: span(l.clockFar) + " difference", look: lookAtClock},
		{Name: "durability", Looks: "`fsync`, `full_page_writes`, `synchronous_commit`", Warning: "`synchronous_commit` is off",
			Problem: "one of the others is off", look: lookAtDurability},
		{Name: "time-limits", Looks: "`statement_timeout`, `transaction_timeout`, `lock_timeout`, " +
			"`idle_in_transaction_session_timeout`, `idle_session_timeout`",
			Warning: fmt.Sprintf("shorter than %[1]s, %[1]s, %[2]s, %[3]s; any `idle_session_timeout`", span(l.statement), span(l.lock), span(l.idleTx)),
			look:    lookAtTimeLimits},
		{Name: "autovacuum", Looks: "`autovacuum`, `track_counts`, and settings of tables", Problem: "it is off", look: lookAtAutovacuum},
		{Name: "connections", Looks: "used connections, the limits, and the pool of a node",
			Warning: percent(l.used) + " in use; a pool larger than a limit", Problem: percent(l.full) + " in use",
			look: lookAtConnections},
		{Name: "transaction-ids", Looks: "age of the oldest unfrozen transaction id", Warning: million(l.xids),
			Problem: million(l.xidsLeft), look: lookAtTransactionIDs},
		{Name: "transactions", Looks: "the longest open transaction", Warning: span(l.transaction), Problem: span(l.longest),
			look: lookAtTransactions},
		{Name: "prepared-transactions", Looks: "the oldest prepared transaction", Problem: span(l.transaction),
			look: lookAtPrepared},
		{Name: "lock-waits", Looks: "the longest wait for a lock", Warning: span(l.lockWait), look: lookAtLockWaits},
		{Name: "replication-slots", Looks: "write-ahead log kept by replication slots",
			Warning: "a slot without a receiver; an invalidated slot",
			Problem: bytes(l.slotWAL), look: lookAtSlots},
		{Name: "schema", Looks: "the version of the tables", Problem: "another version than the program's; the remaining checks are skipped",
			look: lookAtSchema},
		{Name: "rights", Looks: "the rights of the role on the tables",
			Problem: "a missing right; read-only roles are not examined", tables: true, look: lookAtRights},
		{Name: "indexes", Looks: "the indexes of the migrations", Problem: "missing, invalid or different", tables: true,
			look: lookAtIndexes},
		{Name: "dead-rows", Looks: "rows that vacuum has not removed", Warning: fmt.Sprintf("%d, and %s of the table", l.deadRows,
			percent(l.deadShare)),
			tables: true, look: lookAtDeadRows},
		{Name: "partitions", Looks: "future partitions of the outbox", Warning: "less than " + span(l.ahead),
			Problem: "none for the current time",
			tables:  true, look: lookAtPartitions},
		{Name: "definitions", Looks: "workflows that ran here, compared with this program's",
			Warning: "the program lacks a version that has open instances",
			Problem: "a definition changed under its version; stored members of the data that this program lacks or cannot read",
			tables:  true, look: lookAtDefinitions},
		{Name: "migrations", Looks: "migrations of instances to another version",
			Warning: fmt.Sprintf("one waits for a node without the version, or for activities; one takes longer than %s; one rejected instances "+
				"that are still open", span(l.migration)),
			Problem: "no node executes it", tables: true, look: lookAtMigrations},
		{Name: "retention", Looks: "the node that runs retention, and expired partitions",
			Warning: fmt.Sprintf("no node runs it; more than %d expired partitions are still needed", l.held),
			tables:  true, look: lookAtRetention},
		{Name: "expired", Looks: "the oldest expired key that was not removed", Warning: span(l.expired), tables: true, look: lookAtExpired},
		{Name: "in-flight", Looks: "the oldest command in flight", Warning: span(l.inFlight), tables: true, look: lookAtInFlight},
		{Name: "due", Looks: "the oldest due command that was not started", Problem: span(l.due), tables: true, look: lookAtDue},
		{Name: "stale", Looks: "the oldest expired lease", Problem: span(l.stale), tables: true, look: lookAtStale},
		{Name: "lapsed", Looks: "the oldest expired claim of an SQL caller", Warning: span(l.lapsed), tables: true, look: lookAtLapsed},
		{Name: "stuck", Looks: "commands that wait for an operator", Problem: "any", tables: true, look: lookAtStuck},
		{Name: "attempts", Looks: "commands with many attempts", Warning: fmt.Sprintf("more than %d", l.attempts), tables: true,
			look: lookAtAttempts},
		{Name: "sinks", Looks: "position, node and dead letters of each sink",
			Warning: fmt.Sprintf("%s behind; failing receiver; paused; dead letters", span(l.lag)),
			Problem: "no node delivers; blocked",
			tables:  true, look: lookAtSinks},
		{Name: "dead-messages", Looks: "dead messages", Warning: "any", tables: true, look: lookAtDeadMessages},
	}
}

// limits are the thresholds of findings. Those of waiting work are the alerts' in docs/operations.md.
type limits struct {
	check                   time.Duration // that one may take
	clock, clockFar         time.Duration // between the clocks of program and server
	transaction, longest    time.Duration // that a transaction is open: a warning, a problem
	lockWait                time.Duration
	used, full              float64 // of the connections: a warning, a problem
	xids, xidsLeft          int64   // since the oldest frozen one: a warning, a problem
	slotWAL                 int64   // bytes that a replication slot keeps
	deadRows                int64   // of a table, and
	deadShare               float64 // which part of its rows
	ahead                   time.Duration
	inFlight, due, stale    time.Duration
	lapsed, expired         time.Duration
	migration               time.Duration
	attempts                int64 // commands that were tried many times
	lag                     time.Duration
	held                    int // partitions past their age
	statement, lock, idleTx time.Duration
}

var defaults = limits{
	check: 5 * time.Second,
	clock: 5 * time.Second, clockFar: time.Minute,
	transaction: 5 * time.Minute, longest: time.Hour,
	lockWait: 10 * time.Second,
	used:     0.8, full: 0.95,
	xids: 1_000_000_000, xidsLeft: 1_800_000_000,
	slotWAL:  10 << 30,
	deadRows: 10_000, deadShare: 0.2,
	ahead:    7 * 24 * time.Hour,
	inFlight: 24 * time.Hour, due: 5 * time.Minute, stale: 2 * time.Minute,
	lapsed: 24 * time.Hour, expired: 6 * time.Hour,
	migration: 24 * time.Hour,
	attempts:  10,
	lag:       5 * time.Minute,
	held:      2,
	statement: time.Minute, lock: time.Second, idleTx: 10 * time.Second,
}
