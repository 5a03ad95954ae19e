package commit

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/internal/kernel/sqlstate"
	"github.com/pawlhq/pawl/workflow"
)

// reaction is what to do about the failure of a group.
type reaction int

const (
	failureNone reaction = iota
	retryGroup           // run it again: another transaction won, and is visible now
	blocked              // somebody holds a lock; only those who need it should wait
	headLocked           // another transaction holds the lock on a tenant's last log position; only such tenants should wait
	lost                 // the connection is gone, and perhaps the commit was made: ask again by key
	full                 // the database has no room; the callers may retry
	noPartition          // the events are the first of their week, and their partition does not exist yet
	badCommand           // one of the commands cannot be done
)

// headError is a group that could not move the logs of some tenants in time.
type headError struct {
	tenants []string
	err     error
}

func (e *headError) Error() string {
	return "the log of " + strings.Join(e.tenants, ", ") + ": " + e.err.Error()
}

func (e *headError) Unwrap() error { return e.err }

// react classifies an error by its type, SQLSTATE and constraint, never by its
// text; the SQLSTATEs are in the table of package sqlstate. An error that is neither the database's nor of a value is the
// connection's.
func (pipe *Pipeline) react(err error) reaction {
	if err == nil {
		return failureNone
	}
	_, ours := errors.AsType[*workflow.Error](err) // whatever its cause is
	_, value := errors.AsType[*rows.ValueError](err)
	if ours || value {
		return badCommand
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return lost
	}
	switch sqlstate.Classify(e, pipe.config.Schema) {
	case sqlstate.Conflict:
		return retryGroup
	case sqlstate.NoPartition:
		return noPartition
	case sqlstate.LockTaken, sqlstate.Canceled:
		if _, ok := errors.AsType[*headError](err); ok {
			return headLocked
		}
		return blocked
	case sqlstate.Disconnected:
		return lost
	case sqlstate.NoRoom:
		return full
	}
	return badCommand
}

// answerTo is what the caller of a command gets that failed alone.
func answerTo(err error, r reaction) error {
	if e, ok := errors.AsType[*workflow.Error](err); ok {
		return e
	}
	e := &workflow.Error{Cause: err}
	switch r {
	case retryGroup, noPartition:
		e.Code, e.Message = sqlstate.Conflict.Code(), "other transactions kept winning; try again with the same key"
	case blocked, headLocked:
		e.Code, e.Message = sqlstate.LockTaken.Code(), "another transaction holds the instance or the key; try again with the same key"
	case lost:
		e.Code, e.Message = sqlstate.Disconnected.Code(), "the database cannot be reached; ask again with the same key"
	case full:
		e.Code, e.Message = sqlstate.NoRoom.Code(), "the database has no room; try again with the same key"
	default:
		e.Code, e.Message = sqlstate.Defect.Code(), "the command could not be stored"
	}
	return e
}
