package commit

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/internal/kernel/rows"
)

// runners is a pool of connections that run groups. A group takes an open one. If none is returned shortly, one more is opened, and only
// one at a time, so the pool has about as many as are needed. Opening one and preparing its statements costs the server ten milliseconds of
// processor time or more, and closing one that has touched all of the shared buffers as much; when a node starts or is killed, all others
// wait for that.
type runners struct {
	open, closed chan *runner
	opening      chan struct{} // whoever opens one has the place in it
}

const (
	shortly      = 2 * time.Millisecond  // after its answer a group's connection is busy for a moment
	openingLimit = 50 * time.Millisecond // how long one waits while another opens a connection
)

// newRunners makes n, with numbered names. No more than n may run groups at one time.
func (pipe *Pipeline) newRunners(n int, name string, lockTimeout time.Duration) *runners {
	s := &runners{open: make(chan *runner, n), closed: make(chan *runner, n), opening: make(chan struct{}, 1)}
	for i := range n {
		s.put(pipe.newRunner(fmt.Sprintf("%s %d", name, i+1), lockTimeout))
	}
	return s
}

// run runs a group on one of them.
func (s *runners) run(ctx context.Context, ops []*op, retry, waiting bool) (leftover, reaction, error) {
	r := s.take(ctx)
	defer s.put(r)
	return r.run(ctx, ops, retry, waiting)
}

// take takes one, if it can one that is open.
func (s *runners) take(ctx context.Context) *runner {
	select {
	case r := <-s.open:
		return r
	default:
	}
	soon := time.NewTimer(shortly)
	defer soon.Stop()
	select {
	case r := <-s.open:
		return r
	case <-soon.C:
	}
	limit := time.NewTimer(openingLimit)
	defer limit.Stop()
	select {
	case r := <-s.open:
		return r
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
		r := s.takeAny()
		if r.pg == nil {
			_ = r.dial(ctx) // it dials again when it runs, and says why it cannot
		}
		return r
	case <-limit.C:
		return s.takeAny()
	}
}

// takeAny takes one that is open, or else any.
func (s *runners) takeAny() *runner {
	select {
	case r := <-s.open:
		return r
	default:
	}
	select {
	case r := <-s.open:
		return r
	case r := <-s.closed:
		return r
	}
}

func (s *runners) put(r *runner) {
	if r.pg == nil {
		s.closed <- r
	} else {
		s.open <- r
	}
}

// drop closes the connections. Nobody runs a group any more.
func (s *runners) drop() {
	for range cap(s.open) {
		s.takeAny().drop()
	}
}

func (r *runner) dial(work context.Context) error {
	ctx, cancel := context.WithTimeout(work, 10*time.Second)
	defer cancel()
	pg, err := r.pipe.config.Connect(ctx, "pawl "+r.name)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if !r.pipe.config.Pooled {
		_, err = pg.Exec(ctx, r.settings(false))
	}
	if err == nil {
		err = r.pipe.config.Clock.Read(ctx, pg)
	}
	if err == nil {
		r.identity = make([][]byte, 2)
		err = pg.QueryRow(ctx, "SELECT current_setting('session_authorization'), current_setting('role')").Scan(&r.identity[0], &r.identity[1])
	}
	if err != nil {
		closeConn(pg)
		return fmt.Errorf("prepare connection: %w", err)
	}
	kind := rows.NewConn
	if r.pipe.config.Pooled {
		kind = rows.NewUnnamedConn
	}
	r.pg, r.conn, r.open, r.usedByHook = pg, kind(pg.PgConn()), false, false
	// Giving up must end a message that is under way.
	socket := pg.PgConn().Conn()
	r.unwatch = context.AfterFunc(work, func() { _ = socket.Close() })
	return nil
}

// settings are the session settings of the pipeline's connections, whatever the role's defaults are. Statements may only use indexes, even
// if the statistics of a table that was just filled or emptied are wrong. A node that stops within a transaction must not hold its locks
// for long. Answered commands are durable. They apply to the session, or to one transaction: behind a pooler other clients share the
// session, and a hook must not inherit them.
func (r *runner) settings(local bool) string {
	return fmt.Sprintf(`SELECT set_config(name, value, %t) FROM (VALUES ('lock_timeout', '%d'), ('statement_timeout', '0'),
	('idle_in_transaction_session_timeout', '%d'), ('plan_cache_mode', 'force_generic_plan'), ('jit', 'off'),
	('enable_seqscan', 'off'), ('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), ('default_transaction_isolation', 'read committed'),
	('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END)
	) AS s (name, value)`, local, r.lockTimeout.Milliseconds(), r.pipe.config.Limits.HookTimeout.Milliseconds())
}

// roleSettings restore the settings of the role for the user's SQL. Its timeout is that of the hook's context.
const roleSettings = `SET LOCAL lock_timeout TO DEFAULT; SET LOCAL statement_timeout TO DEFAULT; SET LOCAL plan_cache_mode TO DEFAULT;
	SET LOCAL jit TO DEFAULT; SET LOCAL enable_seqscan TO DEFAULT; SET LOCAL enable_hashjoin TO DEFAULT; SET LOCAL enable_mergejoin TO DEFAULT`

// identify gives the transaction the user and the role back that a hook may have changed. Parameters: both, as the connection began.
var identify = rows.Statement{SQL: "SELECT set_config('session_authorization', $1, true), set_config('role', $2, true)",
	OIDs: []uint32{25, 25}}

// restoreSQL undoes what the user's SQL may have left in the session. It spares
// the prepared statements of the protocol, which are ours and pgx's.
const restoreSQL = `CLOSE ALL; RESET ALL; RESET SESSION AUTHORIZATION; RESET ROLE; UNLISTEN *; SELECT pg_advisory_unlock_all();
	DISCARD TEMP; DISCARD SEQUENCES; `

// preparedSQL lists what the user's SQL has prepared.
const preparedSQL = `; SELECT name FROM pg_prepared_statements WHERE from_sql`

// restore makes the session what it was when it was dialled. A session behind a pooler is not ours: what is left there is left.
func (r *runner) restore() error {
	if r.pipe.config.Pooled {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
	defer cancel()
	results, err := r.pg.PgConn().Exec(ctx, restoreSQL+r.settings(false)+preparedSQL).ReadAll()
	if err != nil {
		return err
	}
	for _, row := range results[len(results)-1].Rows {
		if _, err := r.pg.Exec(ctx, "DEALLOCATE "+pgx.Identifier{string(row[0])}.Sanitize(), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	if again := r.pg.Config().AfterConnect; again != nil {
		if err := again(ctx, r.pg.PgConn()); err != nil {
			return err
		}
		_, err = r.pg.PgConn().Exec(ctx, r.settings(false)).ReadAll()
	}
	return err
}

// errHeadsFree is the end of a group that waited too long for a head which was free a moment later.
var errHeadsFree = &pgconn.PgError{Code: "40001", Message: "the logs can be written again"}

// headFailed names the tenants whose logs could not be moved, where a lock was the reason. tenants is the first parameter of the statement
// that failed. Where that had several it does not tell, and the database is asked.
func (r *runner) headFailed(statement *rows.Statement, tenants []byte, err error) error {
	if r.pipe.react(err) != blocked || r.pg.PgConn().IsClosed() {
		return err
	}
	if statement == &r.pipe.stmts.Log.One {
		return &headError{tenants: []string{string(tenants)}, err: err}
	}
	var held []string
	r.set()
	r.conn.Queue(&r.pipe.stmts.HeldHeads, [][]byte{tenants}, func(row *rows.Row) error {
		held = append(held, row.Text())
		return nil
	})
	if err := r.conn.Send(context.Background()); err != nil {
		return err
	}
	if len(held) == 0 {
		return errHeadsFree
	}
	return &headError{tenants: held, err: err}
}
