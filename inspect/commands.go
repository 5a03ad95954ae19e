package inspect

import (
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
)

// CommandKind selects commands in flight: a status, or another number of [Keys].
type CommandKind string

// The kinds. One command may be of several.
const (
	CommandsAll        CommandKind = ""                 // all in flight
	CommandsPending    CommandKind = "pending"          // it waits for a worker, or for its time
	CommandsProcessing CommandKind = "processing"       // somebody works on it
	CommandsRetryable  CommandKind = "failed_retryable" // an attempt has failed; there will be another, or an operator decides
	CommandsScheduled  CommandKind = "scheduled"        // its time is still to come: timers, and what callers have asked for later
	CommandsDue        CommandKind = "due"              // its time has come, and nobody works on it yet
	CommandsStale      CommandKind = "stale"            // the lease of its worker has run out
	CommandsLapsed     CommandKind = "lapsed"           // a caller in SQL has claimed it, and did not end in time
	CommandsStuck      CommandKind = "stuck"            // it waits for an operator
)

// CommandKinds are the kinds that can be asked for.
var CommandKinds = []CommandKind{CommandsPending, CommandsProcessing, CommandsRetryable, CommandsScheduled, CommandsDue, CommandsStale,
	CommandsLapsed,
	CommandsStuck}

// CommandFilter selects commands in flight. Empty fields select everything.
type CommandFilter struct {
	Tenant   string
	Kind     CommandKind
	Workflow string
	Actor    string       // who sent them
	Proof    string       // a part of their proof, such as the id of an API key; also of tickets that were requested with it
	After    CommandPlace // the cursor: Next of the page before
	Limit    int          // 1 to 1000; 0 is 100
}

// CommandPlace is the position of the next page of a list of commands. The zero value is its beginning.
type CommandPlace struct {
	Part     int // of the list, from 0
	Group    string
	Subgroup string
	At       time.Time
	Instance uuid.UUID
	Scope    string
	Key      string
}

// CommandPage is a page of commands in flight, without their requests, with their reasons and the business keys of their instances.
type CommandPage struct {
	// Commands may be fewer than requested, or none, although there are more: a page examines a bounded number.
	Commands []transitions.Record
	More     bool         // there may be more
	Next     CommandPlace // then, where the list goes on
}
