package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/tracing"
)

// runner runs groups on its own connection. It is used by one goroutine at a time.
type runner struct {
	pipe        *Pipeline
	name        string
	lockTimeout time.Duration  // of its statements
	local       rows.Statement // its settings, for one transaction
	identity    [][]byte       // the session's user and role, as the connection began

	pg          *pgx.Conn
	conn        *rows.Conn
	unwatch     func() bool
	open        bool // a transaction that wrote nothing is still open
	usedByHook  bool // the user's SQL has run, and may have left something in the session
	lookUpsLeft int  // the number of groups for which keys are still looked up before they are decided
	peeksNext   bool // the last group consisted of replays
}

// lookUpsAfterConflict is the number of groups that look up their keys after a repeated key.
const lookUpsAfterConflict = 32

// maxTries bounds the attempts of a group that loses to other transactions.
const maxTries = 20

// maxLostInHook bounds the attempts of a command whose own SQL ends the connection.
const maxLostInHook = 3

// leftover holds the commands that a successful run did not settle.
type leftover struct {
	held   []*op // another transaction has locked their instance
	unread []*op // did not fit in this group's memory; a group of one always fits
}

// run commits the ops, and repeats that as long as it makes sense. With a reaction other than failureNone it returns the error, and nothing
// is settled. retry is set in the retry lane. With waiting it waits for locked instances.
func (r *runner) run(ctx context.Context, ops []*op, retry, waiting bool) (left leftover, reaction reaction, err error) {
	span := r.pipe.trace(ctx, ops)
	left, reaction, err = r.commit(ctx, ops, retry, waiting)
	var end tracing.Outcome
	if failed, ok := errors.AsType[*pgconn.PgError](err); ok {
		end.Error = failed.Code
	} else if err != nil {
		end.Error = "_OTHER"
	}
	span.End(end)
	return left, reaction, err
}

func (r *runner) commit(ctx context.Context, ops []*op, retry, waiting bool) (left leftover, reaction reaction, err error) {
	defer r.pipe.gate.enter()()
	begun, missed := time.Now(), false
	var held []*op
	for try := 0; ; try++ {
		if err = r.connect(ctx, begun); err != nil {
			return leftover{}, lost, err
		}
		g := r.pipe.newGroup(ops)
		held, err = r.attempt(ctx, g, try == 0 && !retry, waiting)
		g.release()
		if reaction = r.pipe.react(err); reaction == lost {
			g.markAmbiguous()
		}
		if err != nil {
			g.unreserve()
		}
		if reaction == noPartition {
			if missed { // it exists, but this session does not see it; see TestPartitions_StaleSession
				r.drop()
				reaction = retryGroup
			} else {
				reaction, err = r.makePartition(ctx, g.now, err)
				missed = reaction == retryGroup
			}
		}
		switch reaction {
		case failureNone:
			r.pipe.finish(g)
			r.end()
			return leftover{held, g.unread}, failureNone, nil
		case lost:
			r.drop()
			r.pipe.stats.lost.Add(1)
			if e, ok := errors.AsType[*hookLostError](err); ok {
				if ops[0].lostInHook++; ops[0].lostInHook >= e.most {
					return leftover{}, lost, e.answer()
				}
			}
			if time.Since(begun) > r.pipe.config.Limits.Outage || !backoff.Wait(ctx, groupRetry, try) {
				return leftover{}, lost, err
			}
		case retryGroup:
			r.end()
			r.pipe.stats.again.Add(1)
			if try >= maxTries || try > 1 && !backoff.Wait(ctx, groupRetry, try) {
				return leftover{}, retryGroup, err
			}
		default:
			if r.pg.IsClosed() {
				r.drop()
			}
			r.end()
			return leftover{}, reaction, err
		}
	}
}

// makePartition creates a missing partition of the outbox. They are created ahead, except after a jump of the clock or weeks without a
// node.
func (r *runner) makePartition(ctx context.Context, at time.Time, missed error) (reaction, error) {
	err := pgx.BeginFunc(ctx, r.pg, func(tx pgx.Tx) error {
		if r.pipe.config.Pooled { // the session has no lock_timeout
			if _, err := tx.Exec(ctx, r.local.SQL, pgx.QueryExecModeExec); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, r.pipe.stmts.Partition, pgx.QueryExecModeExec, at, true)
		return err
	})
	if err != nil {
		return r.pipe.react(err), fmt.Errorf("make a partition of the outbox: %w", err)
	}
	return retryGroup, missed
}

// attempt runs a group once. The first run omits what only conflicts need. A command with an activity is read by a group of one only if it
// may have been answered before.
func (r *runner) attempt(ctx context.Context, g *group, first, waiting bool) (held []*op, err error) {
	switch o := g.ops[0]; {
	case o.p.Hook:
		return r.hooked(ctx, g, waiting)
	case first && len(g.ops) == 1 && o.p.Resumed == nil && o.p.Operation == nil && (!o.p.Works || r.lookUpsLeft > 0):
		return r.one(g)
	}
	operates := slices.ContainsFunc(g.ops, func(o *op) bool { return o.p.Operation != nil }) // on a command that must be looked up
	return r.many(g, loading{blind: first && r.lookUpsLeft == 0 && !operates, waiting: waiting})
}

// one commits a group of one with a single statement; see the package comment.
func (r *runner) one(g *group) (held []*op, err error) {
	o := g.ops[0]
	if o.p.Creates {
		// Most creations are new. Those that are not, or that are refused, read first what is there.
		g.decideOne(g.parts[0], o)
		made := o.decision.After != nil
		if made && o.plain() {
			return nil, r.writeOne(g, g.parts[0], o)
		}
		*g = *r.pipe.newGroup(g.ops)
		if made && r.lookUpsLeft == 0 {
			return r.many(g, loading{blind: true})
		}
	}
	t := g.parts[0]
	r.set()
	keys := [][]byte{[]byte(o.p.Tenant), o.p.Instance[:], []byte(o.p.Scope), []byte(o.p.Key)}
	r.conn.Queue(&r.pipe.stmts.Read, keys, func(row *rows.Row) error {
		inst, err := store.ReadInstance(row, t.tenant)
		if err != nil {
			return err
		}
		if inst != nil {
			t.slots[inst.ID].loaded(inst)
		}
		record, err := store.ReadRecord(row)
		if record != nil {
			g.known(t.keyStates[commandKey{record.Scope, record.Key}], record)
		}
		return err
	})
	if err := r.conn.Send(context.Background()); err != nil {
		return nil, err
	}
	inst := t.slots[o.p.Instance].inst
	tied := inst != nil && inst.Links.InFlight != nil
	g.decideOne(t, o)
	switch {
	case len(t.stored) == 0:
		return nil, nil
	case !o.plain() || tied: // retention may remove the command without a new version
		*g = *r.pipe.newGroup(g.ops)
		return r.many(g, loading{})
	}
	return nil, r.writeOne(g, t, o)
}

// errBlind ends a group that needs the look-up of its keys.
var errBlind = &pgconn.PgError{Code: "40001", Message: "a command may have been answered before"}

// errMoved reports that an instance and its commands were read in different states.
var errMoved = &pgconn.PgError{Code: "40001", Message: "the instance moved meanwhile"}

func (r *runner) writeOne(g *group, t *part, o *op) error {
	if err := g.fill(); err != nil {
		return err
	}
	set, s := g.sets[0], r.pipe.stmts
	tenant, command := [][]byte{[]byte(t.tenant)}, set.commands.Params(rows.Single)
	r.set()
	if o.step == 0 {
		r.conn.Queue(&s.RefuseOne, params(tenant, command), nil)
		return r.conn.Send(context.Background())
	}
	stmt := &s.ChangeOne
	var instance [][]byte
	if set.created.Len() == 1 {
		stmt, instance = &s.CreateOne, set.created.Params(rows.Single)
	} else {
		instance = store.ChangeParams(set.changed)
	}
	log := params(set.entries.Params(rows.Single), set.events.Params(rows.Single))
	r.conn.Queue(stmt, params(tenant, instance, command, log), set.readHead)
	if err := r.conn.Send(context.Background()); err != nil {
		return err
	}
	if t.head == 0 {
		return errMoved
	}
	return nil
}

// many commits a group in two messages; see the package comment. held are the commands whose instance is locked.
func (r *runner) many(g *group, how loading) (held []*op, err error) {
	if r.peeksNext && !how.blind {
		if r.peeksNext, err = r.peek(g); r.peeksNext || err != nil {
			return nil, err
		}
		*g = *r.pipe.newGroup(g.ops)
	}
	r.conn.Queue(&r.pipe.stmts.Begin, nil, nil)
	r.set()
	begun := how.queue(r.conn, r.pipe.stmts, g)
	if begun {
		if err := r.conn.Send(context.Background()); err != nil {
			return nil, r.rollback(r.noteConflict(err))
		}
	}
	if g.outdated() {
		return nil, r.rollback(errMoved)
	}
	g.blind = how.blind
	held = g.decide()
	if how.blind && !g.settledByKeys() {
		return nil, r.giveUp(begun, r.noteConflict(errBlind))
	}
	if slices.ContainsFunc(g.ops, func(o *op) bool { return o.record != nil && o.p.Resumed == nil }) { // a key was there already
		r.lookUpsLeft = lookUpsAfterConflict
	} else if r.lookUpsLeft > 0 {
		r.lookUpsLeft--
	}
	if !g.writes() {
		r.open = true // without a commit, the answers need not wait for its end
		r.peeksNext = !how.blind && len(held) == 0 && g.answered()
		return held, nil
	}
	g.reserve()
	if err := g.fill(); err != nil {
		return nil, r.giveUp(begun, err)
	}
	queueWrites(r.conn, r.pipe.stmts, g)
	r.conn.Queue(&r.pipe.stmts.Commit, nil, nil)
	if err := r.conn.Send(context.Background()); err != nil {
		statement, params := r.conn.Failed()
		err = r.rollback(r.noteConflict(err))
		if statement == &r.pipe.stmts.Log.One || statement == &r.pipe.stmts.Log.Many {
			err = r.headFailed(statement, params[0], err)
		}
		return nil, err
	}
	return held, nil
}

// peek answers a group whose commands all have stored final results. It takes no locks, and reports false if any command is still in
// flight: such a command may be about to change, and its answer needs the lock of its instance.
func (r *runner) peek(g *group) (bool, error) {
	r.set()
	lookUp(r.conn, r.pipe.stmts, g)
	if err := r.conn.Send(context.Background()); err != nil || !g.answered() {
		return false, err
	}
	g.decide()
	r.lookUpsLeft = lookUpsAfterConflict
	return true, nil
}

// set queues the settings of the next transaction. A message without BEGIN is one.
func (r *runner) set() {
	if r.pipe.config.Pooled {
		r.conn.Queue(&r.local, nil, nil)
	}
}

// giveUp discards the queue and ends the transaction, if it has begun.
func (r *runner) giveUp(begun bool, cause error) error {
	r.conn.Forget()
	if !begun {
		return cause
	}
	return r.rollback(cause)
}

func (r *runner) noteConflict(err error) error {
	if r.pipe.react(err) == retryGroup {
		r.lookUpsLeft = lookUpsAfterConflict
	}
	return err
}

// rollback ends a failed transaction, and returns the cause.
func (r *runner) rollback(cause error) error {
	if r.pg.PgConn().IsClosed() {
		return cause
	}
	r.conn.Queue(&r.pipe.stmts.Rollback, nil, nil)
	if err := r.conn.Send(context.Background()); err != nil && cause == nil {
		return err
	}
	return cause
}

// end ends a transaction without writes, and restores the session after the user's SQL. The commands are answered before.
func (r *runner) end() {
	if r.open {
		r.open = false
		if err := r.rollback(nil); err != nil {
			r.drop()
		}
	}
	if r.usedByHook && r.pg != nil {
		r.usedByHook = false
		if err := r.restore(); err != nil {
			r.pipe.log.Warn("cannot restore the session after a transition's own SQL", "runner", r.name, "error", err)
			r.drop()
		}
	}
}

// connect opens a missing connection. It retries until the outage has lasted too long.
func (r *runner) connect(ctx context.Context, since time.Time) error {
	for try := 1; r.pg == nil; try++ {
		err := r.dial(ctx)
		if err == nil {
			return nil
		}
		r.pipe.log.Warn("cannot connect", "runner", r.name, "error", err)
		if time.Since(since) > r.pipe.config.Limits.Outage || !backoff.Wait(ctx, dialRetry, try) {
			return err
		}
	}
	return nil
}

func (r *runner) drop() {
	if r.pg != nil {
		r.unwatch()
		closeConn(r.pg)
	}
	r.pg, r.conn = nil, nil
}

func closeConn(pg *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = pg.Close(ctx) // the connection is abandoned anyway
}
