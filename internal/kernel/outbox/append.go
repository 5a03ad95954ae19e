// Package outbox owns the tables outbox and log: the events of every tenant in commit order.
//
// Positions are gapless per tenant and commit-ordered, because the row lock on the log's head is the last one of a transaction. So a
// reader's cursor is one integer, and "position > cursor" never skips a late commit. The package supplies the commit pipeline with
// statements, and reads the log.
package outbox

import (
	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Columns are the columns of an event in the order of Add, without the tenant. step is not a column of the table: it is the index of the
// event's transition in the statement, from 1.
var Columns = rows.ColumnsOf(func(s *rows.Set) { _ = Add(s, 1, &transitions.Event{}) }) // an event without attributes is no error

// Add adds an event of the step-th transition to a set. Values of the transition's audit row are not stored again: actor, reason, key and
// cause, and the payload of its own event. It returns an error for attributes that cannot be encoded.
func Add(s *rows.Set, step int, e *transitions.Event) error {
	attributes, err := attributesOf(e)
	if err != nil {
		return err
	}
	s.Tenant(e.Tenant)
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
	s.Col("trace", rows.Text).TextOrNull(string(e.Trace))
	return nil
}

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

// Insert writes the insert of a set's events. Parameters: the columns. position is an SQL expression of u.step and the source from.
func Insert(b *rows.Builder, position, from string) {
	names := rows.Names(Columns[1:])
	b.Add("INSERT INTO {pawl}.outbox (tenant, position, ", names, ") SELECT ", b.Tenant(), ", ", position, ", ", names, " FROM ").
		Source(Columns).Add(", ", from)
}

// Moves returns a buffer for the number of new transitions of logs, in the order of the tenants.
func Moves() *rows.Set { return rows.NewSet(moveColumns) }

var moveColumns = []rows.Column{rows.Of("steps", rows.Int8)}

// Advance writes a query that moves the heads of logs in the order of Moves. It returns the index of each, from 1, the number of
// transitions as steps, and its previous head as base. It takes the heads' row locks, the last ones of a transaction. Parameters: the
// moves; a single transition has none, and reads the row source from.
func Advance(b *rows.Builder, from string) {
	switch b.Form() {
	case rows.Single:
		b.Add("SELECT 1::bigint AS ord, 1::bigint AS steps, {pawl}.advance(", b.Tenant(), ", 1) AS base FROM ", from)
	case rows.OneTenant:
		b.Add("SELECT 1::bigint AS ord, u.steps, {pawl}.advance(", b.Tenant(), ", u.steps) AS base FROM (SELECT ").Param(rows.Int8, false).
			Add(" AS steps) AS u")
	default:
		b.Add("SELECT u.ord, u.steps, {pawl}.advance(u.tenant, u.steps) AS base FROM ").Source(moveColumns)
	}
}
