package commit

import (
	"fmt"

	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/internal/kernel/store"
)

// Statements holds the statements of the pipeline for one schema. The pipelines and the tests that explain them share one value.
type Statements struct {
	Begin, Commit, Rollback rows.Statement

	// Of a group of several, with arrays. Log moves the logs and writes their rows.
	Lock, LockWaiting, Lookup    Forms
	Create, Change, Command, Log Forms

	// For a group with instances that move to another version: the instances, and their commands in flight.
	Migrate, MigrateFlights Forms

	// Of a group with commands in flight.
	Disarm, Resume, Due, Accept, Cancel, Settle Forms

	// HeldHeads tells whose logs cannot be written now.
	HeldHeads rows.Statement

	// HeadTimeout sets a longer lock_timeout for the log's last position than for other locks: the transaction that holds it is committing.
	HeadTimeout rows.Statement

	// Of a caller's own transaction: the same rows with a provisional position, which Provisional takes. It makes the transaction durable
	// when it commits, too: others are answered with what it has written.
	Provisional, EmitProvisional, AuditProvisional rows.Statement

	// Of a group of one, with scalars.
	Read, CreateOne, ChangeOne, RefuseOne rows.Statement

	// Partition creates the partition of the outbox for a time. Parameters: the time; whether to wait for another session that creates one,
	// which is forbidden while holding row locks.
	Partition string
}

// Forms is a statement in two forms: for the rows of one tenant, and of many.
type Forms struct{ One, Many rows.Statement }

func (f *Forms) of(parts []*part) *rows.Statement {
	if formOf(parts) == rows.ManyTenants {
		return &f.Many
	}
	return &f.One
}

// Named lists the statements with their names.
func (s *Statements) Named() map[string]*rows.Statement {
	named := map[string]*rows.Statement{
		"begin": &s.Begin, "commit": &s.Commit, "rollback": &s.Rollback,
		"head_timeout": &s.HeadTimeout, "held_heads": &s.HeldHeads, "provisional": &s.Provisional, "audit_provisional": &s.AuditProvisional,
		"emit_provisional": &s.EmitProvisional,
		"read":             &s.Read, "create_one": &s.CreateOne, "change_one": &s.ChangeOne, "refuse_one": &s.RefuseOne,
	}
	for name, f := range map[string]*Forms{
		"lock": &s.Lock, "lock_waiting": &s.LockWaiting, "lookup": &s.Lookup,
		"create": &s.Create, "change": &s.Change, "command": &s.Command, "log": &s.Log,
		"migrate": &s.Migrate, "migrate_flights": &s.MigrateFlights, "disarm": &s.Disarm,
		"accept": &s.Accept, "cancel": &s.Cancel, "settle": &s.Settle, "resume": &s.Resume, "due": &s.Due,
	} {
		named[name], named[name+"_many"] = &f.One, &f.Many
	}
	return named
}

// NewStatements builds the statements. in inserts the schema's name.
func NewStatements(in func(sql string) string) *Statements {
	s := &Statements{
		Begin:          rows.Statement{SQL: "BEGIN ISOLATION LEVEL READ COMMITTED"},
		Commit:         rows.Statement{SQL: "COMMIT"},
		Rollback:       rows.Statement{SQL: "ROLLBACK"},
		HeadTimeout:    rows.Statement{SQL: fmt.Sprintf("SET LOCAL lock_timeout = %d", headLockTimeout.Milliseconds())},
		HeldHeads:      rows.Statement{SQL: outbox.HeldHeads, OIDs: []uint32{rows.Text.OID(true)}},
		Provisional:    rows.Statement{SQL: "SELECT nextval('{pawl}.provisional') FROM {pawl}.durable()"},
		Partition:      in("SELECT {pawl}.make_partition('outbox', $1, $2)"),
		Lock:           forms(func(b *rows.Builder) { store.LockInstances(b, store.SkipLocked) }),
		LockWaiting:    forms(func(b *rows.Builder) { store.LockInstances(b, store.WaitForLocked) }),
		Lookup:         forms(store.FindCommands),
		Create:         forms(store.InsertInstances),
		Change:         forms(store.ChangeInstances),
		Migrate:        forms(store.MigrateInstances),
		MigrateFlights: forms(store.MigrateFlights),
		Command:        forms(func(b *rows.Builder) { store.InsertCommands(b, "") }),
		Log:            forms(func(b *rows.Builder) { b.Add("WITH "); moveLog(b, "") }),
		Disarm:         forms(store.DisarmCommands),
		Resume:         forms(store.UnparkInstances),
		Due:            forms(store.MakeDue),
		Accept:         forms(store.AcceptCommands),
		Cancel:         forms(store.CancelCommands),
		Settle:         forms(store.SettleCommands),
		Read:           build(rows.Single, store.ReadBoth),
		CreateOne:      build(rows.Single, func(b *rows.Builder) { writeOne(b, store.InsertInstances) }),
		ChangeOne:      build(rows.Single, func(b *rows.Builder) { writeOne(b, store.ChangeInstance) }),
		RefuseOne:      build(rows.Single, func(b *rows.Builder) { store.InsertCommands(b, "") }),
	}
	s.EmitProvisional = build(rows.OneTenant, func(b *rows.Builder) { outbox.Insert(b, "h.base + u.step", provisionalBase) })
	s.AuditProvisional = build(rows.OneTenant, func(b *rows.Builder) { audit.Insert(b, "h.base + u.ord", provisionalBase) })
	for _, stmt := range s.Named() {
		stmt.SQL = in(stmt.SQL)
	}
	return s
}

func build(form rows.Form, write func(*rows.Builder)) rows.Statement {
	b := rows.For(form)
	write(b)
	return b.Statement()
}

func forms(write func(*rows.Builder)) Forms {
	return Forms{One: build(rows.OneTenant, write), Many: build(rows.ManyTenants, write)}
}

// writeOne writes one instance, its command and its transition. Each write reads a row from the one before, so they happen in lock order,
// and none happens if the instance was not written. It returns what moveLog does.
func writeOne(b *rows.Builder, instance func(*rows.Builder)) {
	b.Add("WITH i AS (")
	instance(b)
	b.Add(" RETURNING 1), c AS (")
	store.InsertCommands(b, "i")
	b.Add(" RETURNING 1), ")
	moveLog(b, "c")
}

// moveLog continues a statement: it advances the logs and writes their rows at the new positions. With one tenant a position follows the
// tenant's head; with many it is looked up in an array. It returns the ordinal of each log and its head before. Parameters: those of
// outbox.Advance, then the columns of audit rows and of events.
func moveLog(b *rows.Builder, from string) {
	b.Add("l AS MATERIALIZED (")
	outbox.Advance(b, from)
	source, audited, emitted := "l", "l.base + u.ord", "l.base + u.step"
	if b.Form() == rows.ManyTenants {
		b.Add("), h AS MATERIALIZED (SELECT array_agg(l.base + s.n ORDER BY l.ord, s.n) AS positions FROM l, generate_series(1, l.steps) AS s(n)")
		source, audited, emitted = "h", "h.positions[u.ord]", "h.positions[u.step]"
	}
	b.Add("), a AS (")
	audit.Insert(b, audited, source)
	b.Add("), o AS (")
	outbox.Insert(b, emitted, source)
	b.Add(") SELECT l.ord, l.base FROM l")
}

// provisionalBase is a source h with the base of this transaction's provisional positions.
const provisionalBase = "(SELECT currval('{pawl}.provisional') AS base) AS h"
