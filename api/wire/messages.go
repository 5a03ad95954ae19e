package wire

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/workflow"
)

// The messages of a WebSocket, one type each for the AsyncAPI document. Servers and clients use [Message] and [ServerMessage].
type (
	// Sent by clients.

	SubscribeMessage struct {
		Op     string         `json:"op"`
		ID     string         `json:"id"`
		After  jsontext.Value `json:"after"` // a position, "start" or "now"
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

	// Sent by the server.

	SubscribedMessage struct {
		Op    string `json:"op"`
		ID    string `json:"id"`
		After int64  `json:"after"` // the position before the first event
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

// CloudEvent is an event of the log, as transitions.Event.AppendCloudEvent encodes it. The API documents use this name.
type CloudEvent Event
