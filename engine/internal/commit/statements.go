package commit

import (
	"fmt"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/internal/rows"
	"github.com/pawlhq/pawl/internal/store"
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
	Disarm, Resume, Accept, Cancel, Settle rows.Statement

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
		"disarm": &s.Disarm, "resume": &s.Resume, "accept": &s.Accept, "cancel": &s.Cancel, "settle": &s.Settle,
		"head_timeout": &s.HeadTimeout, "provisional": &s.Provisional, "audit_provisional": &s.AuditProvisional,
		"emit_provisional": &s.EmitProvisional,
		"read":             &s.Read, "create_one": &s.CreateOne, "change_one": &s.ChangeOne, "refuse_one": &s.RefuseOne,
	}
}

// NewStatements writes the statements; in puts the schema's name into one.
func NewStatements(in func(sql string) string) *Statements {
	s := &Statements{
		Begin:       rows.Statement{SQL: "BEGIN ISOLATION LEVEL READ COMMITTED"},
		Commit:      rows.Statement{SQL: "COMMIT"},
		Rollback:    rows.Statement{SQL: "ROLLBACK"},
		HeadTimeout: rows.Statement{SQL: fmt.Sprintf("SET LOCAL lock_timeout = %d", headLockTimeout.Milliseconds())},
		Lock:        build(func(b *rows.Builder) { store.LockInstances(b, store.SkipLocked) }),
		LockWaiting: build(func(b *rows.Builder) { store.LockInstances(b, store.WaitForLocked) }),
		Lookup:      build(store.FindCommands),
		Read:        build(store.ReadBoth),
		Provisional: rows.Statement{SQL: "SELECT nextval('pawl.provisional') FROM pawl.durable()"},
		Partition:   in("SELECT pawl.make_partition('outbox', $1, $2)"),
	}
	s.Create = build(func(b *rows.Builder) { store.InsertInstances(b, true) })
	s.Change = build(store.ChangeInstances)
	s.Command = build(func(b *rows.Builder) { store.InsertCommands(b, true, "") })
	s.Disarm = build(store.DisarmCommands)
	s.Resume = build(store.UnparkInstances)
	s.Accept = build(store.AcceptCommands)
	s.Cancel = build(store.CancelCommands)
	s.Settle = build(store.SettleCommands)
	s.Advance = build(func(b *rows.Builder) { outbox.Advance(b, "") })
	// Parameters of the two inserts: the rows' own, then tenant and count.
	s.Audit = build(func(b *rows.Builder) {
		audit.Insert(b, true, "h.base + u.ord", "")
		outbox.Base(b)
	})
	s.Emit = build(func(b *rows.Builder) {
		outbox.Insert(b, true, "h.base + u.step", "")
		outbox.Base(b)
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
		store.InsertInstances(b, false)
		restOfOne(b.Add(" RETURNING 1)"))
	})
	s.ChangeOne = build(func(b *rows.Builder) {
		b.Add("WITH i AS (")
		store.ChangeInstance(b)
		restOfOne(b.Add(" RETURNING 1)"))
	})
	s.RefuseOne = build(func(b *rows.Builder) { store.InsertCommands(b, false, "") })
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

// restOfOne continues a statement that begins with the write of one instance as
// i. Each write reads a row from the one before, so they happen in lock order,
// and none happens if the instance was not written. It returns the position.
func restOfOne(b *rows.Builder) {
	b.Add(", c AS (")
	store.InsertCommands(b, false, "i")
	b.Add(" RETURNING 1), l AS (")
	outbox.Advance(b, "c")
	b.Add("), a AS (")
	audit.Insert(b, false, "l.head", "l")
	b.Add(") ")
	outbox.Insert(b, false, "l.head", "l")
	b.Add(" RETURNING position")
}

// provisionalBase adds the source h, whose base is before the provisional
// positions of this transaction's newest transitions.
func provisionalBase(b *rows.Builder) {
	b.Add(", (SELECT currval('pawl.provisional') AS base) AS h")
}
