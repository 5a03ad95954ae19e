package inspect

import (
	"time"

	"github.com/google/uuid"
)

// SinkInfo is how a sink stands.
type SinkInfo struct {
	Name        string     `json:"name"`
	Tenants     []string   `json:"tenants,omitempty"` // whose events it gets; none: everybody's
	Node        string     `json:"node,omitempty"`    // who delivers to it; "": nobody does
	Since       time.Time  `json:"since,omitzero"`
	LeaseEnds   time.Time  `json:"lease_ends,omitzero"` // when it is in the past the node is gone
	Paused      *SinkPause `json:"paused,omitempty"`
	Failures    int        `json:"failures"` // attempts in a row that failed for the receiver as a whole
	Failure     string     `json:"failure,omitempty"`
	FailedAt    time.Time  `json:"failed_at,omitzero"`
	Behind      int64      `json:"behind"`          // tenants whose logs it has not got all of
	Lag         int64      `json:"lag"`             // transitions that it has not got, over these tenants
	Oldest      time.Time  `json:"oldest,omitzero"` // the time of the oldest of them; where more than 32 tenants are behind, of the 32 whose cursors have rested longest
	Stuck       int64      `json:"stuck"`           // tenants whose cursor cannot go on
	Delivered   int64      `json:"delivered"`       // events, with repetitions
	Failed      int64      `json:"failed"`          // attempts
	Parked      int64      `json:"parked"`          // events that became dead letters
	DeadLetters int64      `json:"dead_letters"`    // those that wait for an operator
	Aside       int64      `json:"aside"`           // events set aside: they are tried again, or wait behind one that is
}

// SinkPause is why a sink gets nothing.
type SinkPause struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
}

// SinkCursor is how far a sink is in a tenant's log.
type SinkCursor struct {
	Sink     string      `json:"sink"`
	Tenant   string      `json:"tenant"`
	Position int64       `json:"position"` // everything up to it is delivered or a dead letter
	Head     int64       `json:"head"`     // of the log
	Lag      int64       `json:"lag"`      // in transitions
	Oldest   time.Time   `json:"oldest,omitzero"`
	Failure  string      `json:"failure,omitempty"` // why it does not go on
	Updated  time.Time   `json:"updated,omitzero"`
	Moved    *CursorMove `json:"moved,omitempty"`
}

// CursorMove is how an operator moved a cursor last.
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

// DeadStatus is where an event stands that a sink's cursor has passed without its
// delivery.
type DeadStatus string

// The statuses.
const (
	// DeadWaiting is a dead letter: it was given up, and waits for an operator.
	DeadWaiting DeadStatus = "waiting"
	// DeadQueued is delivered by the relay in its turn: it is tried again, was
	// redriven, or comes after such an event of its instance.
	DeadQueued DeadStatus = "queued"
	// DeadRedriven was delivered after an operator had asked for it.
	DeadRedriven DeadStatus = "redriven"
	// DeadSkipped is never delivered: an operator said so.
	DeadSkipped DeadStatus = "skipped"
)

// DeadLetter is an event that its sink's cursor has passed without its delivery.
// The event itself is in the outbox.
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
	Kind        string     `json:"kind"`     // of the newest failure, a sink.Kind; held: it waits behind another and was never tried
	Failure     string     `json:"failure"`  // its message
	Attempts    int        `json:"attempts"` // that failed, since it was first tried or redriven
	Created     time.Time  `json:"created"`
	Updated     time.Time  `json:"updated"`
	By          string     `json:"by,omitempty"` // who redrove or skipped it
	Reason      string     `json:"reason,omitempty"`
}

// DeadFilter selects dead letters of a sink, which is required. Empty fields
// select everything.
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
