package commit

import (
	"fmt"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/internal/rows"
	"github.com/pawlhq/pawl/outbox"
)

// Statements are all statements of the pipeline, for one schema. The pipelines
// and the tests that explain them share one value.
type Statements struct {
	Begin, Commit, Rollback rows.Statement

	// Of a group of several, with arrays.
	Lock, LockWaiting, Lookup                     rows.Statement
	Create, Change, Command, Advance, Audit, Emit rows.Statement

	// Of a group with commands in flight.
	Disarm, Accept, Cancel, Settle rows.Statement

	// HeadTimeout lets a group wait longer for the log's head than for any other
	// lock: whoever has it is committing, and that takes as long as it takes.
	HeadTimeout rows.Statement

	// Of a caller's own transaction: the same rows with a provisional position, which
	// Provisional takes. It makes the transaction durable when it commits, too: others
	// are answered with what it has written.
	Provisional, EmitProvisional, AuditProvisional rows.Statement

	// Of a group of one, with scalars.
	Read, CreateOne, ChangeOne, RefuseOne rows.Statement

	// Partition makes the partition of the outbox for a time. Parameters: the time,
	// whether to wait for somebody else who makes one, which nobody may who holds locks
	// on rows.
	Partition string
}

// Named lists the statements with their names.
func (s *Statements) Named() map[string]*rows.Statement {
	return map[string]*rows.Statement{
		"begin": &s.Begin, "commit": &s.Commit, "rollback": &s.Rollback,
		"lock": &s.Lock, "lock_waiting": &s.LockWaiting, "lookup": &s.Lookup,
		"create": &s.Create, "change": &s.Change, "command": &s.Command, "advance": &s.Advance, "audit": &s.Audit, "emit": &s.Emit,
		"disarm": &s.Disarm, "accept": &s.Accept, "cancel": &s.Cancel, "settle": &s.Settle,
		"head_timeout": &s.HeadTimeout, "provisional": &s.Provisional, "audit_provisional": &s.AuditProvisional, "emit_provisional": &s.EmitProvisional,
		"read": &s.Read, "create_one": &s.CreateOne, "change_one": &s.ChangeOne, "refuse_one": &s.RefuseOne,
	}
}

// NewStatements writes the statements; in puts the schema's name into one.
func NewStatements(in func(sql string) string) *Statements {
	s := &Statements{
		Begin:       rows.Statement{SQL: "BEGIN ISOLATION LEVEL READ COMMITTED"},
		Commit:      rows.Statement{SQL: "COMMIT"},
		Rollback:    rows.Statement{SQL: "ROLLBACK"},
		HeadTimeout: rows.Statement{SQL: fmt.Sprintf("SET LOCAL lock_timeout = %d", headLockTimeout.Milliseconds())},
		Lock:        lockStatement("FOR NO KEY UPDATE SKIP LOCKED"),
		LockWaiting: lockStatement("FOR NO KEY UPDATE"),
		Lookup:      lookupStatement(),
		Read:        readStatement(),
		Provisional: rows.Statement{SQL: "SELECT nextval('pawl.provisional') FROM pawl.durable()"},
		Partition:   in("SELECT pawl.make_partition('outbox', $1, $2)"),
	}
	s.Create = build(func(b *rows.Builder) { insertInstances(b, true) })
	s.Change = build(changeMany)
	s.Command = build(func(b *rows.Builder) { insertCommands(b, true, "") })
	s.Disarm = build(disarm)
	s.Accept = build(acceptMany)
	s.Cancel = build(cancelMany)
	s.Settle = build(settleMany)
	s.Advance = build(func(b *rows.Builder) { outbox.Advance(b, "") })
	// Parameters of the two inserts: the rows' own, then tenant and count.
	s.Audit = build(func(b *rows.Builder) {
		audit.Insert(b, true, "h.base + u.ord", "")
		appendBase(b)
	})
	s.Emit = build(func(b *rows.Builder) {
		outbox.Insert(b, true, "h.base + u.step", "")
		appendBase(b)
	})
	s.EmitProvisional = build(func(b *rows.Builder) {
		outbox.Insert(b, true, "h.base + u.step", "")
		provisionalBase(b)
	})
	s.AuditProvisional = build(func(b *rows.Builder) {
		audit.Insert(b, true, "h.base + u.ord", "")
		provisionalBase(b)
	})
	s.CreateOne = build(func(b *rows.Builder) {
		b.Add("WITH i AS (")
		insertInstances(b, false)
		restOfOne(b.Add(" RETURNING 1)"))
	})
	s.ChangeOne = build(func(b *rows.Builder) {
		b.Add("WITH i AS (")
		changeOne(b)
		restOfOne(b.Add(" RETURNING 1)"))
	})
	s.RefuseOne = build(func(b *rows.Builder) { insertCommands(b, false, "") })
	for _, stmt := range s.Named() {
		stmt.SQL = in(stmt.SQL)
	}
	return s
}

func build(write func(*rows.Builder)) rows.Statement {
	var b rows.Builder
	write(&b)
	return b.Statement()
}

// lockStatement locks instances in the order of the given ids. held says that
// the instance is there but somebody else has it. The lateral subquery can only
// be index probes, in the order of the array. Parameters: tenant, ids.
func lockStatement(how string) rows.Statement {
	var b rows.Builder
	b.Add("SELECT u.id, i.id IS NULL AND (SELECT true FROM pawl.instance x WHERE x.tenant = ").Param(rows.Text, false).
		Add(" AND x.id = u.id LIMIT 1) IS NOT NULL AS held, i.ctid, ", instanceSelect, " FROM unnest(").Param(rows.UUID, true).
		Add(") AS u(id) LEFT JOIN LATERAL (SELECT i.ctid, i.* FROM pawl.instance i WHERE i.tenant = $1 AND i.id = u.id LIMIT 1 ", how, ") i ON true")
	return b.Statement()
}

const findAudit = ` LEFT JOIN LATERAL (SELECT a.position FROM pawl.audit a
	WHERE a.tenant = $1 AND a.instance = c.instance AND a.version = c.version LIMIT 1) a ON true`

// lookupStatement finds the commands of many keys, each with an index probe.
// Parameters: tenant, scopes, keys.
func lookupStatement() rows.Statement {
	var b rows.Builder
	b.Add("SELECT ", recordSelect, " FROM (SELECT ").Param(rows.Text, false).Add(" AS tenant) t, unnest(").Param(rows.Text, true).Add(", ").Param(rows.Text, true).
		Add(") AS u(scope, key) CROSS JOIN LATERAL (SELECT * FROM pawl.command c WHERE c.tenant = $1 AND c.scope = u.scope AND c.key = u.key LIMIT 1) c",
			findAudit)
	return b.Statement()
}

// readStatement finds one instance and one key, without a lock. Parameters:
// tenant, id, scope, key.
func readStatement() rows.Statement {
	var b rows.Builder
	b.Add("SELECT ", instanceSelect, ", ", recordSelect, " FROM (SELECT ").Param(rows.Text, false).
		Add(" AS tenant) t LEFT JOIN LATERAL (SELECT * FROM pawl.instance i WHERE i.tenant = $1 AND i.id = ").Param(rows.UUID, false).
		Add(" LIMIT 1) i ON true LEFT JOIN LATERAL (SELECT * FROM pawl.command c WHERE c.tenant = $1 AND c.scope = ").Param(rows.Text, false).
		Add(" AND c.key = ").Param(rows.Text, false).Add(" LIMIT 1) c ON true", findAudit)
	return b.Statement()
}

func insertInstances(b *rows.Builder, array bool) {
	names := rows.Names(createdColumns)
	b.Add("INSERT INTO pawl.instance (tenant, ", names, ") SELECT ").Param(rows.Text, false).
		Add(", ", names, " FROM ").Source(createdColumns, array)
}

const changeSet = `state = u.state, version = u.version, data = u.data, attributes = u.attributes, actors = u.actors, links = u.links, paused = u.paused,
	open = u.open, chain = u.chain, updated_at = u.updated_at`

// changeMany updates locked instances, which it finds where the lock saw them: a
// locked row does not move, and a join on the row's place leaves the planner
// nothing else to do, also when it takes the table for empty (tenant and id are
// compared in a way that no index serves, so that none tempts it). Should an
// instance not have the version that was decided on, the transaction fails and
// runs again.
func changeMany(b *rows.Builder) {
	b.Add("WITH changed AS (UPDATE pawl.instance AS i SET ", changeSet, " FROM ").Source(changedColumns, true).
		Add(" WHERE i.ctid = u.row AND i.tenant IS NOT DISTINCT FROM ").Param(rows.Text, false).
		Add(" AND i.id IS NOT DISTINCT FROM u.id AND i.version = u.before RETURNING 1) SELECT pawl.expect(count(*), ").Param(rows.Int8, false).Add(") FROM changed")
}

func changeOne(b *rows.Builder) {
	b.Add("UPDATE pawl.instance AS i SET ")
	for n, c := range changedColumns[3:] {
		if n > 0 {
			b.Add(", ")
		}
		b.Add(c.Name, " = ").Param(c.Type, false)
	}
	b.Add(" WHERE i.id = ").Param(rows.UUID, false).Add(" AND i.version = ").Param(rows.Int8, false).
		Add(" AND i.tenant = ").Param(rows.Text, false)
}

// restOfOne continues a statement that begins with the write of one instance as
// i. Each write reads a row from the one before, so they happen in lock order,
// and none happens if the instance was not written. It returns the position.
func restOfOne(b *rows.Builder) {
	b.Add(", c AS (")
	insertCommands(b, false, "i")
	b.Add(" RETURNING 1), l AS (")
	outbox.Advance(b, "c")
	b.Add("), a AS (")
	audit.Insert(b, false, "l.head", "l")
	b.Add(") ")
	outbox.Insert(b, false, "l.head", "l")
	b.Add(" RETURNING position")
}

// appendBase adds the source h, whose base is the log's head before this
// transaction's transitions. Parameters: tenant, their number.
func appendBase(b *rows.Builder) {
	b.Add(", (SELECT head - ").Param(rows.Int8, false).Add(" AS base FROM pawl.log WHERE tenant = ").Param(rows.Text, false).Add(") AS h")
}

// provisionalBase adds the source h, whose base is before the provisional
// positions of this transaction's newest transitions.
func provisionalBase(b *rows.Builder) {
	b.Add(", (SELECT currval('pawl.provisional') AS base) AS h")
}
