// Package sqlstate is the table of PostgreSQL's errors: the meaning of each SQLSTATE for Pawl, and where a retry helps, with which key.
// The commit pipeline follows the table, docs/sqlstates.md is generated from it, and tests run each row.
package sqlstate

import "github.com/pawlhq/pawl/workflow"

// Class is the meaning of an error for the statements of the commit pipeline.
type Class int

const (
	// Defect means that the command, its code or its data is at fault. A retry gets the same error.
	Defect Class = iota
	// Conflict means that another transaction won, and is visible to the next attempt.
	Conflict
	// NoPartition means that the partition for the events of this week is missing.
	NoPartition
	// LockTaken means that another transaction holds a lock for too long.
	LockTaken
	// Canceled means that the statement was cancelled or ran into a timeout.
	Canceled
	// Disconnected means that the connection is lost or leads to a standby. The outcome of a commit is unknown.
	Disconnected
	// NoRoom means that the server lacks memory, disk space or connections.
	NoRoom
)

// Engine describes how an engine treats the error in its own statements.
func (c Class) Engine() string {
	switch c {
	case Conflict:
		return "retries the transaction, up to 20 times"
	case NoPartition:
		return "creates the partition and retries the transaction"
	case LockTaken, Canceled:
		return "retries the command in the retry lane, up to `LockWait`"
	case Disconnected:
		return "reconnects and retries by key, up to `Outage`"
	}
	return "does not retry"
}

// Code is the code that the caller gets if the engine does not repeat the command, or has repeated it in vain.
func (c Class) Code() workflow.Code {
	switch c {
	case Conflict, NoPartition, Disconnected:
		return workflow.Unavailable
	case LockTaken, Canceled:
		return workflow.Locked
	case NoRoom:
		return workflow.Overloaded
	}
	return workflow.Internal
}

// OwnCode is [Class.OwnCode] of the row. The constraints of Pawl's tables do not count there.
func (r *Row) OwnCode() workflow.Code {
	if r.On != nil {
		return Defect.OwnCode()
	}
	return r.Class.OwnCode()
}

// OwnCode is the code that the caller gets if the error is raised by the SQL of a transition (engine.InTx). That SQL may talk to other
// servers and set limits of its own, so only a conflict is repeated.
func (c Class) OwnCode() workflow.Code {
	switch c {
	case Conflict, LockTaken:
		return c.Code()
	case Canceled:
		return workflow.TimedOut
	}
	return workflow.Internal
}
