package inflight

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// flight is a command whose lease this node holds.
type flight struct {
	decide.InFlight
	slot activity
	stop context.CancelCauseFunc // ends the attempt
	quit context.CancelFunc      // ends also the wait for the commit of its outcome

	// Guarded by Runner.mu:
	kept      time.Time // when its lease was prolonged last, or a little earlier; by this node's clock, from before the message
	begin     func()    // begins the work, under Runner.mu, once the lease is known to be held; nil: it has begun
	expiry    *time.Timer
	deadline  time.Time // after it the lease is left to run out; zero: it is not known yet
	submitted bool      // the attempt is over, and its outcome is on its way to be committed
	progress  []byte    // the newest report that is not stored
	renewing  bool      // its lease is to be prolonged at once, for its row may have changed
}

// attrs are what a log entry about the command says.
func (f *flight) attrs(more ...any) []any {
	return append([]any{"tenant", f.Tenant, "scope", f.Scope, "key", f.Key, "workflow", f.Workflow, "transition", f.Transition,
		"attempt", f.Attempt}, more...)
}

// Updated processes a commit: it starts the commands that this node leased, schedules polls for the others, and notifies watchers. A
// command that has just been accepted has no watchers yet.
func (r *Runner) Updated(list []decide.FlightUpdate) {
	hint := false
	var changed []transitions.Ref
	for i := range list {
		l := &list[i]
		if l.Receipt != nil || l.Stop || !l.Ambiguous && (l.Attempt > 1 || l.Attempt == 1 && !l.Leased) {
			changed = append(changed, l.Ref)
		}
		switch {
		case l.Receipt != nil:
			r.config.Watchers.Ended(l.Ref, *l.Receipt)
		case l.Ambiguous:
			r.mu.Lock()
			r.askLater(l.Ref, l.Attempt, l.CreatedAt)
			r.want(false)
			r.mu.Unlock()
		case l.Leased:
			r.launch(&flight{InFlight: l.InFlight, slot: activity{l.Workflow, l.Transition}, kept: l.Since})
		case l.Stop:
			r.stopAttempt(l.Ref, &decide.CancelledError{By: l.CancelledBy})
		case l.Status != transitions.Processing:
			hint = r.expect(l) || hint
		}
	}
	if hint {
		r.config.Hint()
	}
	if len(changed) > 0 {
		r.config.Watchers.Changed(changed)
	}
}

// expect records when a waiting command is due. It reports whether the command is due and this node has no free worker for it.
func (r *Runner) expect(l *decide.FlightUpdate) (hint bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case l.RunAt.IsZero(): // it waits for an operator
	case l.RunAt.After(r.config.Clock.Now()):
		r.wantAt(l.RunAt)
	case !r.started || r.ended:
		return true
	case l.Phase == transitions.Scheduled:
		r.want(true)
	case r.slots.workers == 0:
		r.slots.more = true
		return true
	case r.slots.wait(activity{l.Workflow, l.Transition}):
		return true
	default:
		r.want(false)
	}
	return false
}

// launch begins to work on a command that this node has leased and has a slot for. Where the commit took so long that the lease may have
// run out, it is prolonged first, for another node may have the command. A runner that is stopping gives it back instead.
func (r *Runner) launch(f *flight) {
	ctx, quit := context.WithCancel(context.Background())
	attempt, stop := context.WithCancelCause(ctx)
	f.quit, f.stop = quit, stop
	f.begin = func() {
		f.begin = nil
		if f.Phase != transitions.Scheduled { // to decide one needs the lease, and finds out
			f.expiry = time.AfterFunc(time.Until(f.kept.Add(r.config.Lease)), func() { r.expire(f) })
		}
		go r.run(ctx, attempt, f)
	}
	r.mu.Lock()
	before := r.held[f.Ref]
	unbegun := before != nil && before.begin != nil
	if before != nil && !before.submitted {
		before.stop(decide.ErrLost) // it did not end in time, and this is the next attempt
		before.begin = nil
		r.stats.count(func(s *Stats) { s.Lost++ })
	}
	r.held[f.Ref] = f
	ended := r.ended
	if ended {
		f.begin = nil
	} else {
		r.beginOrRenew(f)
	}
	r.mu.Unlock()
	if unbegun {
		r.finish(before)
	}
	if ended {
		r.returnUnbegun(f)
	}
}

// beginOrRenew begins the work if at least half of the lease is left, by this node's clock; else the lease is prolonged first, as often as
// that takes so long. r.mu is held.
func (r *Runner) beginOrRenew(f *flight) {
	if time.Since(f.kept) < r.config.Lease/2 {
		f.begin()
	} else {
		r.renewNow(f)
	}
}

// returnUnbegun gives back a command that was not begun.
func (r *Runner) returnUnbegun(f *flight) {
	r.giveBack(f, decide.Later(0).Back)
	r.finish(f)
}

// expire ends an attempt whose lease has run out by this node's clock: it could not be prolonged, and others may begin.
func (r *Runner) expire(f *flight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[f.Ref] != f || f.submitted {
		return
	}
	if left := time.Until(f.kept.Add(r.config.Lease)); left > 0 {
		f.expiry.Reset(left)
		return
	}
	if !f.keeps(time.Now()) {
		return // its context is done already
	}
	f.stop(decide.ErrLapsed)
	r.config.Log.Warn("an attempt is told to end: its lease could not be prolonged in time", f.attrs()...)
}

// run works on a command. Should its code end the goroutine, the lease runs out as that of a node that is gone.
func (r *Runner) run(ctx, attempt context.Context, f *flight) {
	defer r.finish(f)
	ctx, attempt, span := r.trace(ctx, attempt, f)
	var v decide.Verdict
	var ending *decide.Outcome
	defer func() { span.End(outcomeOf(ending, v.Back)) }()
	if f.Phase == transitions.Scheduled {
		v = r.submitDue(ctx, f)
	} else if v = r.attempt(attempt, f); v.Outcome != nil {
		ending = v.Outcome
		v = r.submitOutcome(ctx, f, *ending)
	}
	if v.Back != nil {
		r.giveBack(f, v.Back)
	}
}

// finish lets go of a command.
func (r *Runner) finish(f *flight) {
	f.stop(nil)
	f.quit()
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.expiry != nil {
		f.expiry.Stop()
	}
	if r.held[f.Ref] == f {
		delete(r.held, f.Ref)
	}
	r.vacate(f.slot)
}

// stopAttempt ends the attempt at a command, if it is under way here.
func (r *Runner) stopAttempt(ref transitions.Ref, cause error) {
	r.mu.Lock()
	f := r.held[ref]
	r.mu.Unlock()
	if f != nil && f.Phase != transitions.Undoing {
		f.stop(cause)
	}
}

// version is the one that the command's instance is on. nil: this node does not know it.
func (r *Runner) version(f *flight) *workflow.Workflow {
	for _, w := range r.config.Definitions.Versions(f.Workflow) {
		if w.Version == f.Definition {
			return w
		}
	}
	return nil
}

// cancelSettings bound the wait for a lock, keep the statement to its index, and make what is answered durable, on a connection that is the
// user's. Parameter: milliseconds.
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
