package inflight

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// cancelSettings bound the wait for a lock, keep the statement to its index, and
// make what is answered durable, on a connection that is the user's. Parameter:
// milliseconds.
const cancelSettings = `SELECT set_config('lock_timeout', $1, true), set_config('enable_seqscan', 'off', true), ` + durable

// Cancel requests that a command in flight stops. A waiting command ends soon. The context of a running one is cancelled, at once on this
// node and with the next heartbeat on another. Its effect may have happened; it is undone if an undo is declared. A finished command does
// not change, without an error. Cancel waits up to 2 seconds for a locked row.
//
// Errors: CommandNotFound; InvalidRequest for an undo; Locked; TimedOut; Unavailable.
func (r *Runner) Cancel(ctx context.Context, ref transitions.Ref, by string) error {
	var phase transitions.Phase
	var asked bool
	err := pgx.BeginTxFunc(ctx, r.config.Callers, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, cancelSettings, fmt.Sprint(r.lockWait.Milliseconds())); err != nil {
			return err
		}
		var err error
		phase, asked, err = r.sql.Cancel(ctx, tx, ref, by, r.config.Clock.Now())
		return err
	})
	refused, _ := errors.AsType[*pgconn.PgError](err)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return transitions.UnknownCommand()
	case err != nil && ctx.Err() != nil:
		return &workflow.Error{Code: workflow.TimedOut, Message: "the command could not be cancelled in time; ask again", Cause: err}
	case refused != nil && refused.Code == "55P03": // lock_not_available
		return &workflow.Error{Code: workflow.Locked, Message: "another transaction holds the command; ask again when it has ended", Cause: err}
	case err != nil:
		return &workflow.Error{Code: workflow.Unavailable, Message: "the command could not be cancelled; ask again", Cause: err}
	case phase == transitions.Undoing:
		return workflow.Errorf(workflow.InvalidRequest, "an undo cannot be cancelled; when it is stuck it can be abandoned")
	}
	if asked {
		r.stopAttempt(ref, &decide.CancelledError{By: by})
		r.Wake()
		r.config.Watchers.Changed([]transitions.Ref{ref})
	}
	return nil
}
