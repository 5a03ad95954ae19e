package inspect

import (
	"time"

	"github.com/google/uuid"
)

// SinkInfo is how a sink stands.
type SinkInfo struct {
	Name        string
	Tenants     []string // whose events it gets; none: everybody's
	Node        string   // who delivers to it; "": nobody does
	Since       time.Time
	LeaseEnds   time.Time // when it is in the past the node is gone
	Paused      *SinkPause
	Failures    int // attempts in a row that failed for the receiver as a whole
	Failure     string
	FailedAt    time.Time
	Behind      int64     // tenants whose logs it has not got all of
	Lag         int64     // transitions that it has not got, over these tenants
	Oldest      time.Time // the time of the oldest of them; where more than 32 tenants are behind, of the 32 whose cursors have rested longest
	Stuck       int64     // tenants whose cursor cannot go on
	Delivered   int64     // events, with repetitions
	Failed      int64     // attempts
	Parked      int64     // events that became dead letters
	DeadLetters int64     // those that wait for an operator
	Aside       int64     // events set aside: they are tried again, or wait behind one that is
}

// SinkPause is why a sink gets nothing.
type SinkPause struct {
	At     time.Time
	By     string
	Reason string
}

// SinkCursor is how far a sink is in a tenant's log.
type SinkCursor struct {
	Sink     string
	Tenant   string
	Position int64 // everything up to it is delivered or a dead letter
	Head     int64 // of the log
	Lag      int64 // in transitions
	Oldest   time.Time
	Failure  string // why it does not go on
	Updated  time.Time
	Moved    *CursorMove
}

// CursorMove is how an operator moved a cursor last.
type CursorMove struct {
	From   int64
	At     time.Time
	By     string
	Reason string
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
	Sink        string
	Tenant      string
	Position    int64
	Type        string
	Ordinal     int
	Workflow    string
	Instance    uuid.UUID
	BusinessKey string // of the instance
	Status      DeadStatus
	Kind        string // of the newest failure, a sink.Kind; held: it waits behind another and was never tried
	Failure     string // its message
	Attempts    int    // that failed, since it was first tried or redriven
	Created     time.Time
	Updated     time.Time
	By          string // who redrove or skipped it
	Reason      string
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
