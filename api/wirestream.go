package api

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/wire"
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

// CloudEvent is an event of the log, as [transitions.Event.AppendCloudEvent] writes it. It has a name of its own in the documents.
type CloudEvent wire.Event
