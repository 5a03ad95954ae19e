// Package inspect defines the queries of readers and operators and their results: lists, counts and views of instances; keys, retention,
// sinks and dead letters; stuck and paused work. The engine reads them from the database; the API, the command line and the metrics present
// them.
package inspect

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// MaxWaiting is how many timers and how many scheduled commands a View has at most.
const MaxWaiting = 100

// View is an instance with what waits for its time on it.
type View struct {
	transitions.Instance
	Parent        *Parent            // nil: nobody has started it
	Timers        []Timer            // armed ones, the next first
	Scheduled     []ScheduledCommand // what callers have asked for later, the next first
	Stuck         []StuckCommand     // what waits for an operator, the longest waiting first
	StuckChildren []StuckChild       // what waits for an operator on instances that this one has started, in the same order
	MoreTimers    bool               // than MaxWaiting
	MoreScheduled bool               // than MaxWaiting
	MoreStuck     bool               // than MaxWaiting
	MoreChildren  bool               // stuck ones than MaxWaiting
}

// Timer is an armed timer of an instance.
type Timer struct {
	Name       string
	Transition string // what it does
	Due        time.Time
}

// ScheduledCommand is a scheduled command on an instance that is not due, or due and not decided yet.
type ScheduledCommand struct {
	Transition string
	Scope      string
	Key        string
	Actor      string
	Due        time.Time
}

// StuckChild is a command that waits for an operator on an instance that another one has started.
type StuckChild struct {
	Instance    uuid.UUID
	Workflow    string
	BusinessKey string
	StuckCommand
}

// MaxTimeline is how many transitions a Case has at most.
const MaxTimeline = 50

// Case is the whole of one instance for operators. Its parts are read one after the other, so they may differ in time.
type Case struct {
	View
	InFlight []transitions.Record // its command in flight, and the undos that are; without their requests
	Earlier  int64                // transitions before those of the timeline
	Timeline []transitions.Entry  // the newest ones, in order
	Chain    Verification         // of its audit rows
}

// Verification is the outcome of checking an audit chain.
type Verification struct {
	Intact    bool    `json:"intact"`    // Broken is empty
	Instances int64   `json:"instances"` // chains checked
	Entries   int64   `json:"entries"`   // rows checked
	Broken    []Break `json:"broken"`
}

// Break is the first row of a chain that is not what it should be.
type Break struct {
	Instance uuid.UUID `json:"instance"`
	Version  int64     `json:"version"`
	Reason   string    `json:"reason"`
}

// ErrNotThen is the cause of InstanceNotFound for an existing instance that did not have the requested version, or did not exist at the
// requested time.
var ErrNotThen = errors.New("the instance is there now")

// Past is an instance as it was after one of its transitions, according to its audit rows, which do not contain attributes, commands in
// flight and pauses.
type Past struct {
	Tenant      string
	ID          uuid.UUID
	Workflow    string
	Definition  int // the version of the definition that it was on
	BusinessKey string
	State       workflow.State
	Version     int64
	Newest      int64  // the version that it has now
	Data        []byte // nil where it was erased
	Erased      bool   // the data of then was erased; its digest is still in the audit chain
	Open        bool   // not in a final state
	CreatedAt   time.Time
	UpdatedAt   time.Time // when the transition was decided
}

// Option is one transition as it stands for an instance and an actor.
type Option struct {
	Transition string
	Allowed    bool
	To         []workflow.State
	Reasons    []Reason // why not
}

// Reason is why a transition is not allowed.
type Reason struct {
	Code    workflow.Code
	Message string
}
