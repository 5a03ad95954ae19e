package commit

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/internal/kernel/sqlstate"
	"github.com/pawlhq/pawl/workflow"
)

// commit settles every op or moves it to the retry lane, in as many groups as fit in memory.
func (pipe *Pipeline) commit(ctx context.Context, ops []*op) {
	for most := len(ops); len(ops) > 0; {
		n, bytes := 1, pipe.weight(ops[0])
		for ; n < min(most, len(ops)); n++ {
			if bytes += pipe.weight(ops[n]); bytes > pipe.config.Limits.GroupBytes {
				break
			}
		}
		rest := pipe.commitSome(ctx, ops[:n:n])
		if most = len(ops); len(rest) == n { // the group read too much for its first commands
			most = max(n/2, 1)
		}
		ops = slices.Concat(rest, ops[n:])
	}
}

// commitSome settles ops or moves them to the retry lane. It returns those that did not fit in memory.
func (pipe *Pipeline) commitSome(ctx context.Context, ops []*op) (rest []*op) {
	var left []*op // before anything was done for them
	ops = slices.DeleteFunc(pipe.unbroken(ops), func(o *op) bool {
		leaves := o.leaves()
		if leaves {
			left = append(left, o)
		}
		return leaves
	})
	answerLeft(left)
	ops, retry := pipe.retry.sort(ops)
	if len(ops) > 0 {
		rest = pipe.commitNow(ctx, ops)
	}
	// Not earlier, so that they do not overtake the commands before them.
	if len(rest) == 0 {
		pipe.retry.push(retry...)
		return nil
	}
	return append(rest, retry...)
}

func (pipe *Pipeline) commitNow(ctx context.Context, ops []*op) (rest []*op) {
	left, reaction, err := pipe.committers.run(ctx, ops, false, false)
	switch {
	case reaction == failureNone:
		pipe.retry.push(left.held...)
		return left.unread
	case reaction == blocked:
		pipe.retry.push(ops...)
	case reaction == headLocked:
		tenants := pipe.retry.markHeadsLocked(err)
		theirs := func(o *op) bool { return slices.Contains(tenants, o.p.Tenant) }
		pipe.retry.push(slices.DeleteFunc(slices.Clone(ops), func(o *op) bool { return !theirs(o) })...)
		pipe.commit(ctx, slices.DeleteFunc(ops, theirs))
	case (reaction == badCommand || reaction == retryGroup) && len(ops) > 1:
		// One command is at fault, or keeps losing: each half tells which.
		pipe.stats.splits.Add(1)
		pipe.commit(ctx, ops[:len(ops)/2])
		pipe.commit(ctx, ops[len(ops)/2:])
	default:
		pipe.fail(ops, err, reaction)
	}
	return nil
}

// reaction is the reaction to the failure of a group.
type reaction int

const (
	failureNone reaction = iota
	retryGroup           // run it again: another transaction won, and is visible now
	blocked              // another transaction holds a lock; only commands that need it should wait
	headLocked           // another transaction holds the lock on a tenant's last log position; only such tenants should wait
	lost                 // the connection is lost, and the commit is ambiguous: run again with the keys
	full                 // the database is full; callers may retry
	noPartition          // the events are the first of their week, and their partition does not exist yet
	badCommand           // one of the commands cannot be done
)

// headError reports the tenants whose log positions are locked.
type headError struct {
	tenants []string
	err     error
}

func (e *headError) Error() string {
	return "the log of " + strings.Join(e.tenants, ", ") + ": " + e.err.Error()
}

func (e *headError) Unwrap() error { return e.err }

// react classifies an error by its type, SQLSTATE and constraint, never by its text. Other errors are those of the connection.
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

// answerTo returns the error for the caller of a command that failed alone.
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
