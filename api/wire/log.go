package wire

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Entry is one transition of an instance, as its audit row says.
type Entry struct {
	Version    int64             `json:"version"`
	Position   int64             `json:"position"`
	Transition string            `json:"transition"`
	From       workflow.State    `json:"from,omitempty"` // "" for the creation
	To         workflow.State    `json:"to"`
	Actor      string            `json:"actor"`
	Proof      string            `json:"proof,omitempty"` // how it was known who that is, and who acted as him
	Reason     string            `json:"reason,omitempty"`
	Payload    jsontext.Value    `json:"payload"`
	Data       jsontext.Value    `json:"data"` // after the transition
	Scope      string            `json:"scope"`
	Key        string            `json:"key"`
	Cause      transitions.Cause `json:"cause"`               // what it comes from
	CausedBy   string            `json:"caused_by,omitempty"` // which one of these it was, where it has a name
	Automatic  []string          `json:"automatic,omitempty"` // transitions that followed by themselves, in the same commit
	At         time.Time         `json:"at"`
	Hash       string            `json:"hash"` // hex SHA-256, chained to the entry before
}

// History is a piece of an instance's history, oldest first.
type History struct {
	Instance uuid.UUID `json:"instance"`
	Entries  []Entry   `json:"entries"`
	// NextAfter asks for the next piece as ?after=; 0 when this piece is not full.
	NextAfter int64 `json:"next_after,omitzero"`
}

// Events is a piece of the log, in order.
type Events struct {
	Events []jsontext.Value `json:"events"` // CloudEvents 1.0
	// NextAfter asks for what follows as ?after=. Everything up to it was looked
	// at, so it also moves over events that the filter left out.
	NextAfter int64 `json:"next_after"`
	// Head is the newest position of the log. NextAfter reaches it when there is
	// nothing more.
	Head int64 `json:"head"`
}

// Event is one event of the log, with every attribute of the CloudEvent. Its ID is "position-number" with the event's
// number within the transition.
type Event struct {
	SpecVersion     string            `json:"specversion"`
	ID              string            `json:"id"`
	Source          string            `json:"source"`
	Type            string            `json:"type"`
	Subject         string            `json:"subject"`
	Time            time.Time         `json:"time"`
	Position        int64             `json:"position,string"`
	Instance        uuid.UUID         `json:"instance"`
	Version         int64             `json:"version"`
	Workflow        string            `json:"workflow"`
	Transition      string            `json:"transition"`
	State           workflow.State    `json:"state"`
	BusinessKey     string            `json:"businesskey,omitempty"`
	From            workflow.State    `json:"from,omitempty"` // "" for a creation
	Actor           string            `json:"actor,omitempty"`
	Reason          string            `json:"reason,omitempty"`
	Scope           string            `json:"scope,omitempty"` // of the command, as its key
	Key             string            `json:"key,omitempty"`
	Cause           transitions.Cause `json:"cause,omitempty"`
	CausedBy        string            `json:"causedby,omitempty"`
	Traceparent     string            `json:"traceparent,omitempty"` // where in a trace its transition was decided
	Tracestate      string            `json:"tracestate,omitempty"`
	Redacted        bool              `json:"redacted,omitzero"` // the data was erased
	DataContentType string            `json:"datacontenttype,omitempty"`
	Data            jsontext.Value    `json:"data,omitempty"`
}
