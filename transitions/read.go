package transitions

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Reply is what one command of several got: a receipt or an error.
type Reply struct {
	Receipt Receipt
	Err     error
}

// Logged is an event of the log with its CloudEvent, rendered once for all who
// read it.
type Logged struct {
	Event
	CloudEvent []byte
}

// Batch is a piece of a tenant's log, in order and without gaps.
type Batch struct {
	Events []Logged
	// Last is the position up to which the reader has now seen everything. It
	// never stands between two events of one transition.
	Last int64
	// Head is the log's newest known position; Head-Last is how far behind the
	// reader is, in transitions.
	Head int64
}

// Follower reads a tenant's log from a position on. It is for one goroutine.
type Follower interface {
	// Next waits until there is something after what was read last. Its error
	// is the context's, or an *workflow.Error: EventsGone where retention has
	// removed what comes next, Unavailable, ShuttingDown.
	Next(ctx context.Context) (Batch, error)
	// Poll is Next without the wait: the batch is empty when everything is
	// read.
	Poll(ctx context.Context) (Batch, error)
	// Close lets go of the log. It may be called twice.
	Close()
}

// Watcher follows one command. It is for one goroutine.
type Watcher interface {
	// Next returns the command as it stands: the first time at once, then whenever
	// it has changed since. A command that is not in flight changes no more. Its
	// error is the context's, or an *workflow.Error: CommandNotFound, KeyExpired,
	// Unavailable, ShuttingDown.
	Next(ctx context.Context) (Record, error)
	// Close lets go of the command. It may be called twice.
	Close()
}

// StuckFilter selects commands that wait for a person. Empty fields select
// everything.
type StuckFilter struct {
	Tenant      string
	Workflow    string
	BusinessKey string // of the instance, with Workflow
	Instance    uuid.UUID
	After       Record // the cursor: the last of the page before, of which UpdatedAt, Scope and Key count
	Limit       int    // 1 to 1000; 0 is 100
}

// PausedWorkflow is a workflow of which nothing new is begun.
type PausedWorkflow struct {
	Tenant   string    `json:"-"`
	Workflow string    `json:"workflow"`
	Actor    string    `json:"actor"`
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at"`
}

// Verification is the outcome of checking an audit chain.
type Verification struct {
	Instances int64 // chains checked
	Entries   int64 // rows checked
	Broken    []Break
}

// Break is the first row of a chain that is not what it should be.
type Break struct {
	Instance uuid.UUID `json:"instance"`
	Version  int64     `json:"version"`
	Reason   string    `json:"reason"`
}
