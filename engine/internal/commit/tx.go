package commit

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/internal/kernel/sqlstate"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Hook is the user's own SQL of a transition. It runs after the decision and before its rows are written, in their transaction. An error
// that is or wraps an *workflow.Error with code GuardRefused refuses the command: what the hook wrote is undone, and the refusal is stored.
// Any other error fails the command.
type Hook interface {
	RunTx(ctx context.Context, tx pgx.Tx, p *decide.Prepared, d *decide.Decision) error
}

// hooked commits one command whose transition has a hook.
func (r *runner) hooked(ctx context.Context, g *group, waiting bool) (held []*op, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.pipe.config.Limits.HookTimeout)
	defer cancel()
	tx, err := r.pg.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	held, err = r.pipe.inTx(ctx, tx, r.conn, g, txMode{waiting: waiting, settings: &r.local, identity: r.identity})
	r.usedByHook = r.usedByHook || g.hooked
	committing := err == nil && len(held) == 0
	if committing {
		if err = tx.Commit(ctx); err == nil {
			return nil, nil
		}
		switch { // the user's deferred constraints may have failed
		case !r.pg.IsClosed():
			err = hookFailure(ctx, r.pg, g.ops[0], err)
		case g.hooked:
			ended := &hookLostError{err: err, most: maxTries, committing: true} // or the server has ended
			if ctx.Err() != nil {
				ended.most = maxLostInHook
			}
			err = ended
		}
		err = fmt.Errorf("commit: %w", err)
	}
	rollbackTx(ctx, tx)
	outOfTime := g.hooked && !committing && ctx.Err() != nil
	if r.pipe.react(err) == lost && (outOfTime || !r.pg.IsClosed()) { // not an outage: the user's SQL was the cause
		err = hookFailure(ctx, r.pg, g.ops[0], err)
	}
	return held, err
}

// rollbackTx rolls back even if the context has ended. If that fails, pgx has closed the connection.
func rollbackTx(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// RunTx runs a command in the caller's transaction, as a group of one. Nothing is durable, and the log does not advance, until the caller
// commits; then the transition gets its position. So the receipt has none, and a long transaction delays only callers that need the same
// instance or key. RunTx waits for their locks as long as ctx and the transaction's own lock_timeout allow.
func (pipe *Pipeline) RunTx(ctx context.Context, tx pgx.Tx, p *decide.Prepared) (transitions.Receipt, error) {
	defer pipe.gate.enter()()
	o := &op{p: p}
	conn := rows.NewUnnamedConn(tx.Conn().PgConn())
	for try := 0; ; try++ {
		point, err := tx.Begin(ctx)
		if err != nil {
			if failed, ok := errors.AsType[*pgconn.PgError](err); errors.Is(err, pgx.ErrTxClosed) || ok && failed.Code == "25P02" {
				return transitions.Receipt{}, &workflow.Error{Code: workflow.InvalidRequest, Cause: err,
					Message: "the caller's transaction has ended or failed; begin another one"}
			}
			return transitions.Receipt{}, answerTo(fmt.Errorf("savepoint: %w", err), lost)
		}
		g := pipe.newGroup([]*op{o})
		_, err = pipe.inTx(ctx, point, conn, g, txMode{waiting: true})
		if err == nil {
			err = point.Commit(ctx)
		}
		if err == nil {
			g.answers()
			pipe.stats.count(o)
			pipe.scopes.count(g.ops)
			return o.receipt, o.err
		}
		rollbackTx(ctx, point)
		r := pipe.react(err)
		if r == noPartition {
			// In this transaction, because it may hold a lock for which another session's partition would stay invisible.
			makeErr := pgx.BeginFunc(ctx, tx, func(point pgx.Tx) error {
				_, err := point.Exec(ctx, pipe.stmts.Partition, pgx.QueryExecModeExec, g.now, false)
				return err
			})
			if r = retryGroup; makeErr != nil {
				r, err = pipe.react(makeErr), fmt.Errorf("make a partition of the outbox: %w", makeErr)
			}
			if r == blocked {
				err = &workflow.Error{Code: workflow.Locked, Cause: err,
					Message: "another transaction makes room for this week's events until it ends; try again with the same key"}
			}
		}
		if r != retryGroup || try >= 3 {
			return transitions.Receipt{}, answerTo(err, r)
		}
	}
}

// txMode describes the transaction in which a command runs.
type txMode struct {
	waiting  bool            // wait for the instance, instead of returning the command as held
	settings *rows.Statement // of the pipeline, which a hook must not inherit; nil in the caller's own transaction
	identity [][]byte        // the session's user and role, which a hook may change; nil as settings
}

func (m txMode) set(conn *rows.Conn) {
	if m.settings != nil {
		conn.Queue(m.settings, nil, nil)
	}
}

// inTx executes the steps of a group of one in an open transaction.
func (pipe *Pipeline) inTx(ctx context.Context, tx pgx.Tx, conn *rows.Conn, g *group, m txMode) (held []*op, err error) {
	defer g.release()
	m.set(conn)
	loading{waiting: m.waiting}.queue(conn, pipe.stmts, g)
	if err := conn.Send(ctx); err != nil {
		return nil, err
	}
	if g.outdated() {
		return nil, errMoved
	}
	if held = g.decide(); len(held) > 0 {
		return held, nil
	}
	if err := pipe.runHook(ctx, tx, g, m); err != nil {
		return nil, err
	}
	if !g.writes() {
		return nil, nil
	}
	if err := g.fill(); err != nil {
		return nil, err
	}
	if m.settings == nil {
		// The log's last position stays: the trigger on the audit row sets the positions of both rows when the caller's transaction
		// commits, or at once if its constraints are immediate, so the audit row comes last.
		conn.Queue(&pipe.stmts.Provisional, nil, nil)
		queueStates(conn, pipe.stmts, g)
		for _, set := range g.sets {
			if len(set.moved) > 0 {
				conn.Queue(&pipe.stmts.EmitProvisional, args(set.parts, set.events), nil)
				conn.Queue(&pipe.stmts.AuditProvisional, args(set.parts, set.entries), nil)
			}
		}
	} else {
		conn.Queue(&identify, m.identity, nil)
		m.set(conn)
		queueWrites(conn, pipe.stmts, g)
	}
	return nil, conn.Send(ctx)
}

// runHook runs the user's SQL after a savepoint. A GuardRefused error replaces the decision by a refusal.
func (pipe *Pipeline) runHook(ctx context.Context, tx pgx.Tx, g *group, m txMode) error {
	o, t := g.ops[0], g.parts[0]
	if o.decision.Step == nil || o.decision.Step.Hook == nil {
		return nil
	}
	hook, ok := o.decision.Step.Hook.(Hook)
	if !ok {
		return &workflow.Error{Code: workflow.Internal, Message: "the workflow's code failed",
			Cause: fmt.Errorf("the hook of %s.%s is a %T", o.p.Workflow, o.p.Transition, o.decision.Step.Hook)}
	}
	if m.settings != nil {
		if _, err := tx.Exec(ctx, roleSettings); err != nil {
			return fmt.Errorf("settings of the hook: %w", err)
		}
	}
	point, err := tx.Begin(ctx)
	if err != nil {
		return fmt.Errorf("savepoint: %w", err)
	}
	g.hooked = true
	if err = call(ctx, hook, point, o); err == nil {
		if err = point.Commit(ctx); errors.Is(err, pgx.ErrTxClosed) {
			return &workflow.Error{Code: workflow.Internal, Message: "the workflow's code failed",
				Cause: fmt.Errorf("the SQL of %s.%s ended a transaction that is not its own", o.p.Workflow, o.p.Transition)}
		}
		if err != nil {
			return hookFailure(ctx, tx.Conn(), o, fmt.Errorf("release savepoint: %w", err))
		}
		return nil
	}
	refusal, ok := errors.AsType[*workflow.Error](err)
	if !ok || refusal.Code != workflow.GuardRefused {
		return err
	}
	if err := point.Rollback(ctx); err != nil {
		return fmt.Errorf("roll back to savepoint: %w", err)
	}
	own := *refusal // a copy: the hook may return one value many times
	own.State = o.decision.Entry.From
	for _, s := range t.slots { // its children's too
		s.inst, s.changed = nil, false
	}
	t.steps, o.step, o.decision = nil, 0, decide.Refuse(&own)
	t.stored, t.planned, t.disarmed, t.cancelled, t.due = []*op{o}, nil, nil, nil, nil
	return nil
}

// call runs the hook and recovers its panic.
func call(ctx context.Context, hook Hook, tx pgx.Tx, o *op) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &workflow.Error{Code: workflow.Internal, Message: "the workflow's code failed",
				Cause: fmt.Errorf("panic in the SQL of %s.%s: %v", o.p.Workflow, o.p.Transition, v)}
		}
	}()
	if err = hook.RunTx(ctx, tx, o.p, &o.decision); err == nil {
		return nil
	}
	return hookFailure(ctx, tx.Conn(), o, err)
}

// hookLostError reports that the connection ended during the user's SQL.
type hookLostError struct {
	err        error
	most       int  // maximum number of attempts
	committing bool // during the commit, whose outcome is unknown
}

func (e *hookLostError) Error() string {
	return "the connection ended in the transition's own SQL: " + e.err.Error()
}

// answer returns the error for the caller after too many attempts.
func (e *hookLostError) answer() *workflow.Error {
	message := "the connection to the database ended each time the transition's own SQL ran; nothing was done"
	if e.committing {
		message = "the connection to the database ended, or the time of the transition's own SQL was over, each time it was committed; " +
			"ask again with the same key"
	}
	return &workflow.Error{Code: workflow.Unavailable, Message: message, Cause: e}
}

// hookFailure classifies an error of the user's SQL. Its SQLSTATE may come from another server, or from a timeout or lock of the user's
// own. Only a serialization failure and a deadlock run the command again, and only a closed connection or one to a standby is discarded.
func hookFailure(ctx context.Context, pg *pgx.Conn, o *op, err error) error {
	if _, ok := errors.AsType[*workflow.Error](err); ok {
		return err
	}
	failed, _ := errors.AsType[*pgconn.PgError](err)
	class := sqlstate.Defect
	if failed != nil {
		class = sqlstate.Classify(failed, "") // without a schema: its constraints are not Pawl's
	}
	where := fmt.Errorf("SQL of %s.%s: %w", o.p.Workflow, o.p.Transition, err)
	switch {
	case ctx.Err() != nil:
		return &workflow.Error{Code: workflow.TimedOut, Message: "the transition's own SQL took too long; nothing was done", Cause: where}
	case pg.IsClosed() || failed != nil && failed.Code == "25006" && pg.PgConn().ParameterStatus("in_hot_standby") == "on":
		return &hookLostError{err: where, most: maxLostInHook}
	case class == sqlstate.Conflict:
		return err
	case class == sqlstate.Canceled:
		return &workflow.Error{Code: class.OwnCode(), Cause: where,
			Message: "the transition's own SQL was cancelled, or ran into a timeout; nothing was done"}
	case class == sqlstate.LockTaken:
		return &workflow.Error{Code: class.OwnCode(), Message: "the transition's own SQL could not have a lock; nothing was done", Cause: where}
	}
	return &workflow.Error{Code: class.OwnCode(), Message: "the workflow's code failed", Cause: where}
}
