package api

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// What is said on a WebSocket. Package stream writes and reads it without these types, for speed and for messages
// that say what is wrong; they describe it.
type (
	// What a client sends.

	SubscribeMessage struct {
		Op     string         `json:"op"`
		ID     string         `json:"id"`
		After  jsontext.Value `json:"after"` // a position, or where the log begins or ends
		Filter *SubscribeOnly `json:"filter,omitzero"`
	}
	SubscribeOnly struct {
		Workflow    string            `json:"workflow,omitempty"`
		Instance    string            `json:"instance,omitempty"`
		BusinessKey string            `json:"business_key,omitempty"`
		Attributes  map[string]string `json:"attributes,omitempty"`
		Types       []string          `json:"types,omitempty"`
		States      []workflow.State  `json:"states,omitempty"`
	}
	WatchMessage struct {
		Op    string `json:"op"`
		ID    string `json:"id"`
		Scope string `json:"scope"`
		Key   string `json:"key"`
	}
	UnsubscribeMessage struct {
		Op string `json:"op"`
		ID string `json:"id"`
	}
	AuthenticateMessage struct {
		Op         string `json:"op"`
		ID         string `json:"id"`
		Credential string `json:"credential"`
	}

	// What the server sends.

	SubscribedMessage struct {
		Op    string `json:"op"`
		ID    string `json:"id"`
		After int64  `json:"after"` // from where it begins
	}
	EventMessage struct {
		Op       string     `json:"op"`
		ID       string     `json:"id"`
		Position int64      `json:"position"`
		More     bool       `json:"more,omitzero"` // another event of the transition follows
		Event    CloudEvent `json:"event"`
	}
	CaughtUpMessage struct {
		Op       string `json:"op"`
		ID       string `json:"id"`
		Position int64  `json:"position"`
	}
	StatusMessage struct {
		Op      string        `json:"op"`
		ID      string        `json:"id"`
		Final   bool          `json:"final,omitzero"` // the watch is over
		Command CommandStatus `json:"command"`
	}
	UnsubscribedMessage struct {
		Op string `json:"op"`
		ID string `json:"id"`
	}
	AuthenticatedMessage struct {
		Op    string    `json:"op"`
		ID    string    `json:"id"`
		Until time.Time `json:"until,omitzero"`
	}
	ErrorMessage struct {
		Op     string        `json:"op"`
		ID     string        `json:"id"`
		Code   workflow.Code `json:"code"`
		Detail string        `json:"detail"`
	}
)

// CloudEvent is an event of the log, as [transitions.Event.AppendCloudEvent] writes it.
type CloudEvent struct {
	SpecVersion     string            `json:"specversion"`
	ID              string            `json:"id"` // the position and the event's number within the transition
	Source          string            `json:"source"`
	Type            string            `json:"type"`
	Subject         string            `json:"subject"` // the business key, or the instance's id
	Time            time.Time         `json:"time"`
	Position        string            `json:"position"`
	Instance        uuid.UUID         `json:"instance"`
	Version         int64             `json:"version"`
	Workflow        string            `json:"workflow"`
	Transition      string            `json:"transition"`
	State           workflow.State    `json:"state"` // after the transition
	BusinessKey     string            `json:"businesskey,omitempty"`
	From            string            `json:"from,omitempty"`
	Actor           string            `json:"actor,omitempty"`
	Reason          string            `json:"reason,omitempty"`
	Scope           string            `json:"scope,omitempty"`
	Key             string            `json:"key,omitempty"`
	Cause           transitions.Cause `json:"cause,omitempty"`
	CausedBy        string            `json:"causedby,omitempty"`
	Traceparent     string            `json:"traceparent,omitempty"`
	Tracestate      string            `json:"tracestate,omitempty"`
	Redacted        bool              `json:"redacted,omitzero"` // the data was erased
	DataContentType string            `json:"datacontenttype,omitempty"`
	Data            jsontext.Value    `json:"data,omitempty"`
}
