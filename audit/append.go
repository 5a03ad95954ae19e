package audit

import (
	"strings"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/rows"
	"github.com/pawlhq/pawl/transitions"
)

// Columns are the columns of a row as Add fills them, after its tenant. The position
// is not among them: the database gives it.
var Columns = []rows.Column{
	rows.Of("instance", rows.UUID), rows.Of("version", rows.Int8), rows.Of("workflow", rows.Text),
	rows.Of("transition", rows.Text), rows.Of("from_state", rows.Text), rows.Of("to_state", rows.Text),
	rows.Of("actor", rows.Text), rows.Of("reason", rows.Text), rows.Of("payload", rows.JSON), rows.Of("data", rows.JSON),
	rows.Of("scope", rows.Text), rows.Of("key", rows.Text), rows.Of("cause", rows.Text), rows.Of("at", rows.Timestamptz),
	rows.Of("hash", rows.Bytea), rows.Of("rest_digest", rows.Bytea), rows.Of("events_digest", rows.Bytea),
}

// Add adds an entry to a set with these columns. Its Hash must be set.
func Add(s *rows.Set, e *transitions.Entry) {
	s.Tenant(e.Tenant)
	s.UUID(e.Instance)
	s.Int8(e.Version)
	s.Text(e.Workflow)
	s.Text(e.Transition)
	s.TextOrNull(string(e.From))
	s.Text(string(e.To))
	s.Text(e.Actor)
	s.TextOrNull(e.Reason)
	s.Bytes(e.Payload)
	s.Bytes(e.Data)
	if e.Scope == defaultScope(e) {
		s.Null()
	} else {
		s.Text(e.Scope)
	}
	s.Text(e.Key)
	s.TextOrNull(string(e.Cause))
	s.Time(e.At)
	s.Bytes(e.Hash[:])
	s.Bytes(e.Rest)
	s.Bytes(e.Emitted)
}

// defaultScope is the scope that stands as NULL; see ScopeOf.
func defaultScope(e *transitions.Entry) string {
	instance := e.Instance
	if e.Version == 1 {
		instance = uuid.Nil
	}
	return transitions.DefaultScope(e.Workflow, e.Transition, instance)
}

// Insert writes the insert of a set's rows. Parameters: the columns. position is an SQL
// expression that may use u.ord, which counts the rows from 1, and the source from.
func Insert(b *rows.Builder, position, from string) {
	b.Add("INSERT INTO pawl.audit (tenant, position, ", rows.Names(Columns), ") SELECT ", b.Tenant(), ", ", position, ", ", uColumns,
		" FROM ").Source(Columns).Add(", ", from)
}

var uColumns = "u." + strings.ReplaceAll(rows.Names(Columns), ", ", ", u.")
