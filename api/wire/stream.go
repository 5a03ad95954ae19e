package wire

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/workflow"
)

// Subprotocol is the WebSocket subprotocol of GET /v1/stream.
const Subprotocol = "pawl.v1"

// The operations of a client.
const (
	Subscribe    = "subscribe" // to the log
	Watch        = "watch"     // a command
	Unsubscribe  = "unsubscribe"
	Authenticate = "authenticate" // with another credential
)

// Those of a server that a follower of the log meets.
const (
	OpSubscribed    = "subscribed"
	OpEvent         = "event"
	OpCaughtUp      = "caught_up"
	OpAuthenticated = "authenticated"
	OpError         = "error"
)

// Close codes of the subprotocol, beside those of RFC 6455.
const (
	CloseBadMessage = 4400 // the client sent a malformed message; it must not repeat it
	CloseEnded      = 4401 // the credential has ended; with another one the client may resume where the reason says
	CloseSlow       = 4408 // the client reads too slowly; it may resume where the reason says
	CloseGone       = 4410 // the events that the client asks for were removed; the reason says where the log begins
)

// Message is what a client sends.
type Message struct {
	Op     string         `json:"op"`
	ID     string         `json:"id"`
	After  jsontext.Value `json:"after,omitempty"` // of subscribe: a position, "start" or "now"
	Filter Filter         `json:"filter,omitzero"`
	Scope  *string        `json:"scope,omitempty"` // of watch, as Key
	Key    *string        `json:"key,omitempty"`

	Credential *string `json:"credential,omitempty"` // of authenticate
}

// Filter says which events a client wants; what is empty selects everything.
type Filter struct {
	Workflow    string            `json:"workflow,omitempty"`
	Instance    string            `json:"instance,omitempty"`
	BusinessKey string            `json:"business_key,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	Types       []string          `json:"types,omitempty"`
	States      []workflow.State  `json:"states,omitempty"`
}

// ServerMessage is what a server sends.
type ServerMessage struct {
	Op       string         `json:"op"`
	ID       string         `json:"id"`
	After    int64          `json:"after,omitzero"`    // of subscribed: where it begins
	Position int64          `json:"position,omitzero"` // of an event, and of caught_up
	More     bool           `json:"more,omitzero"`     // another event of the same transition follows
	Event    jsontext.Value `json:"event,omitempty"`   // a CloudEvent
	Until    time.Time      `json:"until,omitzero"`    // of authenticated; zero: the credential does not end
	Code     workflow.Code  `json:"code,omitempty"`    // of error
	Detail   string         `json:"detail,omitempty"`  // of error
}
