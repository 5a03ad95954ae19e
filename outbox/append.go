package outbox

import (
	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/internal/rows"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Columns are the columns of an event as Add fills them. step is not a column
// of the table: it says which of the statement's transitions the event belongs
// to, counted from 1.
var Columns = rows.ColumnsOf(func(s *rows.Set) { _ = Add(s, 1, &transitions.Event{}) }) // an event without attributes is no error

// Add adds an event of the step-th transition to a set with these columns. What the
// transition's audit row has is not stored again: of its own event that is the
// payload, of all events who, why, by which key and from what cause. Its error is that
// of attributes that are no JSON.
func Add(s *rows.Set, step int, e *transitions.Event) error {
	attributes, err := attributesOf(e)
	if err != nil {
		return err
	}
	payload := e.Payload
	if e.Ordinal == 0 {
		payload = nil
	}
	s.Col("step", rows.Int8).Int8(int64(step))
	s.Col("type", rows.Text).Text(e.Type)
	s.Col("ordinal", rows.Int4).Int4(e.Ordinal)
	s.Col("workflow", rows.Text).Text(e.Workflow)
	s.Col("instance", rows.UUID).UUID(e.Instance)
	s.Col("version", rows.Int8).Int8(e.Version)
	s.Col("transition", rows.Text).Text(e.Transition)
	s.Col("state", rows.Text).Text(string(e.State))
	s.Col("at", rows.Timestamptz).Time(e.At)
	s.Col("business_key", rows.Text).TextOrNull(e.BusinessKey)
	s.Col("attributes", rows.JSONB).JSONB(attributes)
	s.Col("payload", rows.JSON).Bytes(payload)
	return nil
}

// attributesOf are the event's attributes as JSON, nil for none.
func attributesOf(e *transitions.Event) ([]byte, error) {
	if len(e.Attributes) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(e.Attributes, json.Deterministic(true))
	if err != nil {
		return nil, &workflow.Error{Code: workflow.Internal, Message: "the workflow's attributes cannot be encoded", Cause: err}
	}
	return text, nil
}

// Insert writes the insert of a set's events. Parameters: the tenant, then the
// columns. position is an SQL expression that may use u.step and the source
// from, if that is not "".
func Insert(b *rows.Builder, array bool, position, from string) {
	names := rows.Names(Columns[1:])
	b.Add("INSERT INTO pawl.outbox (tenant, position, ", names, ") SELECT ").Param(rows.Text, false).
		Add(", ", position, ", ", names, " FROM ").Source(Columns, array)
	if from != "" {
		b.Add(", ", from)
	}
}

// Advance writes the statement that moves the log's head by the number of
// transitions and returns the new head. Parameters: the tenant, the number. from
// is a row source whose single row lets it happen, or "". It takes the head's
// row lock, the last of a transaction.
//
// ON CONFLICT rather than UPDATE: it makes the log of a new tenant, and it takes
// the newest head even where the statement's snapshot is older.
func Advance(b *rows.Builder, from string) {
	b.Add("INSERT INTO pawl.log AS l (tenant, head) SELECT ").Param(rows.Text, false).Add(", ").Param(rows.Int8, false)
	if from != "" {
		b.Add(" FROM ", from)
	}
	b.Add(" ON CONFLICT (tenant) DO UPDATE SET head = l.head + excluded.head RETURNING head")
}

// Base adds the source h, whose base is the log's head before this transaction's
// transitions. Parameters: their number, the tenant.
func Base(b *rows.Builder) {
	b.Add(", (SELECT head - ").Param(rows.Int8, false).Add(" AS base FROM pawl.log WHERE tenant = ").Param(rows.Text, false).Add(") AS h")
}
