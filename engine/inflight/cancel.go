package inflight

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Cancel asks a command in flight to stop: one that waits is ended soon; the
// context of one that is being worked on is done, at once on this node and by the
// next heartbeat on another. Its effect may have happened all the same, and then
// is undone where that is declared. A command that is finished is left as it is,
// which is no error. It waits for whoever has locked the row.
//
// Errors: CommandNotFound; InvalidRequest for an undo; those of the database.
func (r *Runner) Cancel(ctx context.Context, ref transitions.Ref, by string) error {
	var phase transitions.Phase
	var asked bool
	err := r.config.Pool.QueryRow(ctx, r.sql.cancel, ref.Tenant, ref.Scope, ref.Key, by, r.config.Now()).Scan(&phase, &asked)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return workflow.Errorf(workflow.CommandNotFound, "there is no command with this scope and key")
	case ctx.Err() != nil:
		return &workflow.Error{Code: workflow.TimedOut, Message: "the command could not be cancelled in time; ask again", Cause: err}
	case err != nil:
		return &workflow.Error{Code: workflow.Unavailable, Message: "the command could not be cancelled; ask again", Cause: err}
	case phase == transitions.Undoing:
		return workflow.Errorf(workflow.InvalidRequest, "an undo cannot be cancelled; when it is stuck it can be abandoned")
	}
	if asked {
		r.stopAttempt(ref, &transitions.CancelledError{By: by})
		r.Wake()
		r.config.Changed([]transitions.Ref{ref})
	}
	return nil
}
