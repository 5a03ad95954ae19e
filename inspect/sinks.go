package inspect

import (
	"time"

	"github.com/google/uuid"
)

// SinkInfo describes the state of a sink.
type SinkInfo struct {
	Name        string     `json:"name"`
	Tenants     []string   `json:"tenants,omitempty"` // the tenants whose events it receives; none means all
	Node        string     `json:"node,omitempty"`    // the node that delivers to it; "" for none
	Since       time.Time  `json:"since,omitzero"`
	LeaseEnds   time.Time  `json:"lease_ends,omitzero"` // in the past if the node has stopped
	Paused      *SinkPause `json:"paused,omitempty"`
	Failures    int        `json:"failures"` // consecutive failures of the receiver as a whole
	Failure     string     `json:"failure,omitempty"`
	FailedAt    time.Time  `json:"failed_at,omitzero"`
	Behind      int64      `json:"behind"`          // tenants with events that it has not received
	Lag         int64      `json:"lag"`             // transitions of these tenants that it has not received
	Oldest      time.Time  `json:"oldest,omitzero"` // the time of the oldest of them, in the 32 tenants with the oldest cursors
	Stuck       int64      `json:"stuck"`           // tenants whose cursor cannot advance
	Delivered   int64      `json:"delivered"`       // events, including repetitions
	Failed      int64      `json:"failed"`          // attempts
	Parked      int64      `json:"parked"`          // events that became dead letters
	DeadLetters int64      `json:"dead_letters"`    // waiting for an operator
	Aside       int64      `json:"aside"`           // deferred events: retried, or waiting behind a retried event
}

// SinkPause describes the pause of a sink.
type SinkPause struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
}

// SinkCursor is the position of a sink in a tenant's log.
type SinkCursor struct {
	Sink     string      `json:"sink"`
	Tenant   string      `json:"tenant"`
	Position int64       `json:"position"` // all events up to it are delivered or dead letters
	Head     int64       `json:"head"`     // the last position of the log
	Lag      int64       `json:"lag"`      // in transitions
	Oldest   time.Time   `json:"oldest,omitzero"`
	Failure  string      `json:"failure,omitempty"` // why it does not advance
	Updated  time.Time   `json:"updated,omitzero"`
	Moved    *CursorMove `json:"moved,omitempty"`
}

// CursorMove is the last move of a cursor by an operator.
type CursorMove struct {
	From   int64     `json:"from"`
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
}

// CursorFilter selects cursors of a sink, which is required.
type CursorFilter struct {
	Sink   string
	Tenant string // "": all
	After  string // the last tenant of the page before
	Limit  int    // 1 to 1000; 0 is 100
}

// DeadStatus is the status of an event that a sink's cursor has passed without delivery.
type DeadStatus string

// The statuses.
const (
	// DeadWaiting is a dead letter: its retries have ended, and it waits for an operator.
	DeadWaiting DeadStatus = "waiting"
	// DeadQueued is waiting for delivery: it is retried, was redriven, or follows such an event of its instance.
	DeadQueued DeadStatus = "queued"
	// DeadRedriven was delivered after an operator redrove it.
	DeadRedriven DeadStatus = "redriven"
	// DeadSkipped is never delivered: an operator skipped it.
	DeadSkipped DeadStatus = "skipped"
)

// DeadLetter is an event that its sink's cursor has passed without delivery. The event itself is in the outbox.
type DeadLetter struct {
	Sink        string     `json:"sink"`
	Tenant      string     `json:"tenant"`
	Position    int64      `json:"position"`
	Type        string     `json:"type"`
	Ordinal     int        `json:"ordinal"`
	Workflow    string     `json:"workflow"`
	Instance    uuid.UUID  `json:"instance"`
	BusinessKey string     `json:"business_key,omitempty"` // of the instance
	Status      DeadStatus `json:"status"`
	Kind        string     `json:"kind"`     // a sink.Kind, of the newest failure; "held" if it was never tried
	Failure     string     `json:"failure"`  // its message
	Attempts    int        `json:"attempts"` // failed ones since the first attempt or the redrive
	Created     time.Time  `json:"created"`
	Updated     time.Time  `json:"updated"`
	By          string     `json:"by,omitempty"` // the operator who redrove or skipped it
	Reason      string     `json:"reason,omitempty"`
}

// DeadFilter selects dead letters of a sink, which is required. Empty fields select everything.
type DeadFilter struct {
	Sink        string
	Status      DeadStatus // "" is DeadWaiting
	Tenant      string
	Workflow    string
	Type        string
	Instance    uuid.UUID
	BusinessKey string // of the instance, with Tenant and Workflow instead of Instance
	Position    int64  // with Tenant
}

// DeadPage says which piece of a list of dead letters is wanted.
type DeadPage struct {
	After DeadLetter // the last one of the page before: its Tenant, Instance, Position and Ordinal count
	Limit int        // 1 to 1000; 0 is 100
}
