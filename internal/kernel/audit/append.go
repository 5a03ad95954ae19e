// Package audit owns the table audit: one append-only row for each transition, chained by hash to the instance's previous row.
//
// It supplies the commit pipeline with the columns and the text of its insert, and reads history. Package audit/verify verifies the chains.
package audit

import (
	"strings"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
)

// Columns are the columns of a row in the order of Add, without the tenant and the position, which the database assigns.
var Columns = rows.ColumnsOf(func(s *rows.Set) { Add(s, &transitions.Entry{}) })

// Add adds an entry to a set with these columns. Its Hash must be set.
func Add(s *rows.Set, e *transitions.Entry) {
	s.Tenant(e.Tenant)
	s.Col("instance", rows.UUID).UUID(e.Instance)
	s.Col("version", rows.Int8).Int8(e.Version)
	s.Col("workflow", rows.Text).Text(e.Workflow)
	s.Col("transition", rows.Text).Text(e.Transition)
	s.Col("from_state", rows.Text).TextOrNull(string(e.From))
	s.Col("to_state", rows.Text).Text(string(e.To))
	s.Col("actor", rows.Text).Text(e.Actor)
	s.Col("proof", rows.Text).TextOrNull(e.Proof)
	s.Col("reason", rows.Text).TextOrNull(e.Reason)
	s.Col("payload", rows.JSON).Bytes(e.Payload)
	s.Col("data", rows.JSON).Bytes(e.Data)
	s.Col("scope", rows.Text).TextOrNull(storedScope(e))
	s.Col("key", rows.Text).Text(e.Key)
	s.Col("cause", rows.Text).TextOrNull(string(e.Cause))
	s.Col("at", rows.Timestamptz).Time(e.At)
	s.Col("hash", rows.Bytea).Bytes(e.Hash[:])
	s.Col("rest_digest", rows.Bytea).Bytes(e.Rest)
	s.Col("events_digest", rows.Bytea).Bytes(e.Emitted)
}

// storedScope returns the scope, "" for the default scope, which is stored as NULL; see ScopeOf.
func storedScope(e *transitions.Entry) string {
	instance := e.Instance
	if e.Version == 1 {
		instance = uuid.Nil
	}
	if e.Scope == transitions.DefaultScope(e.Workflow, e.Transition, instance) {
		return ""
	}
	return e.Scope
}

// Insert writes the insert of a set's rows. Parameters: the columns. position is an SQL expression of u.ord, which counts the rows from 1,
// and the source from.
func Insert(b *rows.Builder, position, from string) {
	b.Add("INSERT INTO {pawl}.audit (tenant, position, ", rows.Names(Columns), ") SELECT ", b.Tenant(), ", ", position, ", ", uColumns,
		" FROM ").Source(Columns).Add(", ", from)
}

var uColumns = "u." + strings.ReplaceAll(rows.Names(Columns), ", ", ", u.")
