package doctor

import (
	"context"
	"fmt"
)

// Check is something that is looked at.
type Check struct {
	Name    string // stable
	Looks   string // what at
	Warning string // what is one; "" where nothing is
	Problem string
	tables  bool // it needs the tables
	// look returns the text for a check without findings. Findings count even with an error.
	look func(ctx context.Context, x *exam) (fine string, found []Finding, err error)
}

// Checks are all of them, in the order in which they are done. docs/doctor.md shows them.
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
		{Name: "memory", Looks: "`work_mem`", Warning: "less than " + bytes(l.workMem), look: lookAtMemory},
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
		{Name: "standbys", Looks: "whether commits wait for a missing standby", Problem: "they do", look: lookAtStandbys},
		{Name: "wal", Looks: "retained write-ahead log", Warning: fmt.Sprintf("%d times `max_wal_size`", l.walTimes),
			Problem: "archiving fails", look: lookAtWAL},
		{Name: "schema", Looks: "the version of the tables", Problem: "another version than the program's; the remaining checks are skipped",
			look: lookAtSchema},
		{Name: "rights", Looks: "the rights of the role on the tables",
			Problem: "a missing right; read-only roles are not examined", tables: true, look: lookAtRights},
		{Name: "indexes", Looks: "the indexes of the migrations", Problem: "missing, invalid or different", tables: true,
			look: lookAtIndexes},
		{Name: "index-bloat", Looks: "estimated empty space in indexes",
			Warning: fmt.Sprintf("%s, and %s of the index", bytes(l.bloat), percent(l.bloatShare)), tables: true, look: lookAtBloat},
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
