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
		{Name: connection, Looks: "whether the database answers", Problem: "it does not; then nothing else is looked at", look: lookAtConnection},
		{Name: "pooler", Looks: "whether PgBouncer or another pooler in transaction mode is there",
			Problem: "it is, and the connection string does not say so", look: lookAtPooler},
		{Name: "server-version", Looks: "the version of PostgreSQL",
			Warning: "it gets no corrections any more, or was not tested", Problem: "it is older than 14; 14.0 to 14.3", look: lookAtVersion},
		{Name: "writable", Looks: "whether the nodes can write", Problem: "a standby; `default_transaction_read_only`", look: lookAtWritable},
		{Name: "clock", Looks: "the clocks of this machine and of the server",
			Warning: span(l.clock) + " apart", Problem: span(l.clockFar) + " apart", look: lookAtClock},
		{Name: "durability", Looks: "`fsync`, `full_page_writes`, `synchronous_commit`", Warning: "the last one is off",
			Problem: "one of the others is", look: lookAtDurability},
		{Name: "time-limits", Looks: "`statement_timeout`, `transaction_timeout`, `lock_timeout`, " +
			"`idle_in_transaction_session_timeout`, `idle_session_timeout`",
			Warning: fmt.Sprintf("shorter than %s, the same, %s, %s; the last one at all", span(l.statement), span(l.lock), span(l.idleTx)),
			look:    lookAtTimeLimits},
		{Name: "memory", Looks: "`work_mem`", Warning: "less than " + bytes(l.workMem), look: lookAtMemory},
		{Name: "autovacuum", Looks: "`autovacuum`, `track_counts`, and what tables say of it", Problem: "it is off", look: lookAtAutovacuum},
		{Name: "connections", Looks: "used connections, the limits, and the pool of a node",
			Warning: percent(l.used) + " are used; a pool that is larger than that", Problem: percent(l.full) + " are used",
			look: lookAtConnections},
		{Name: "transaction-ids", Looks: "transactions since the oldest that is not frozen", Warning: million(l.xids),
			Problem: million(l.xidsLeft), look: lookAtTransactionIDs},
		{Name: "transactions", Looks: "transactions that stay open", Warning: span(l.transaction), Problem: span(l.longest),
			look: lookAtTransactions},
		{Name: "prepared-transactions", Looks: "transactions that were prepared and not ended", Problem: span(l.transaction),
			look: lookAtPrepared},
		{Name: "lock-waits", Looks: "statements that wait for a lock", Warning: span(l.lockWait), look: lookAtLockWaits},
		{Name: "replication-slots", Looks: "what replication slots keep",
			Warning: "it keeps something without a receiver; the server has invalidated one",
			Problem: bytes(l.slotWAL) + " of write-ahead log", look: lookAtSlots},
		{Name: "standbys", Looks: "whether commits wait for a standby that is not there", Problem: "they do", look: lookAtStandbys},
		{Name: "wal", Looks: "the write-ahead log that is kept", Warning: fmt.Sprintf("%d times `max_wal_size`", l.walTimes),
			Problem: "it cannot be archived", look: lookAtWAL},
		{Name: "schema", Looks: "the version of the tables", Problem: "it is not the program's; then nothing below is looked at",
			look: lookAtSchema},
		{Name: "rights", Looks: "the rights of the role on the tables",
			Problem: "it lacks something; a role that only watches is not examined", tables: true, look: lookAtRights},
		{Name: "indexes", Looks: "the indexes that the migrations make", Problem: "one is missing, not valid, or another", tables: true,
			look: lookAtIndexes},
		{Name: "index-bloat", Looks: "empty space in indexes, estimated",
			Warning: fmt.Sprintf("%s, and %s of the index", bytes(l.bloat), percent(l.bloatShare)), tables: true, look: lookAtBloat},
		{Name: "dead-rows", Looks: "rows that vacuum has not got to", Warning: fmt.Sprintf("%d, and %s of the table", l.deadRows,
			percent(l.deadShare)),
			tables: true, look: lookAtDeadRows},
		{Name: "partitions", Looks: "the partitions of the outbox for what is to come", Warning: "less than " + span(l.ahead),
			Problem: "none for now",
			tables:  true, look: lookAtPartitions},
		{Name: "definitions", Looks: "the workflows that ran here, compared with those of this program",
			Warning: "a version of its workflows is not there, and has open instances",
			Problem: "one has changed under its version; members of the data are stored that this program has not, or cannot read",
			tables:  true, look: lookAtDefinitions},
		{Name: "migrations", Looks: "migrations of instances to another version",
			Warning: fmt.Sprintf("one waits, for a node without the version or for activities; one takes longer than %s; it has refused instances "+
				"that are still open", span(l.migration)),
			Problem: "no node does it", tables: true, look: lookAtMigrations},
		{Name: "retention", Looks: "the node that removes expired data, and partitions past their age",
			Warning: fmt.Sprintf("no node does it; more than %d partitions are still needed", l.held),
			tables:  true, look: lookAtRetention},
		{Name: "expired", Looks: "keys past their time", Warning: span(l.expired), tables: true, look: lookAtExpired},
		{Name: "in-flight", Looks: "the oldest command in flight", Warning: span(l.inFlight), tables: true, look: lookAtInFlight},
		{Name: "due", Looks: "commands that are due and not begun", Problem: span(l.due), tables: true, look: lookAtDue},
		{Name: "stale", Looks: "leases that have run out", Problem: span(l.stale), tables: true, look: lookAtStale},
		{Name: "lapsed", Looks: "claims of callers in SQL that have run out", Warning: span(l.lapsed), tables: true, look: lookAtLapsed},
		{Name: "stuck", Looks: "commands that wait for an operator", Problem: "there are some", tables: true, look: lookAtStuck},
		{Name: "attempts", Looks: "commands that are tried again and again", Warning: fmt.Sprintf("more than %d", l.attempts), tables: true,
			look: lookAtAttempts},
		{Name: "sinks", Looks: "the position of each sink, its node, and its dead letters",
			Warning: fmt.Sprintf("%s behind; its receiver fails; it is paused; it has dead letters", span(l.lag)),
			Problem: "no node delivers; it is blocked",
			tables:  true, look: lookAtSinks},
		{Name: "dead-messages", Looks: "messages that were not consumed", Warning: "there are some", tables: true, look: lookAtDeadMessages},
	}
}
