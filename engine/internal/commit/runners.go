package commit

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/internal/kernel/rows"
)

// runners is a pool of connections that run groups. A group takes an open connection. If none is returned shortly, another one is opened,
// one at a time, so the pool has about as many as are needed. Opening a connection and preparing its statements costs the server ten
// milliseconds of CPU or more, and so does closing one that has touched all shared buffers.
type runners struct {
	open, closed chan *runner
	opening      chan struct{} // a semaphore for opening one
}

const (
	shortly      = 2 * time.Millisecond  // after its answer a group's connection is busy for a moment
	openingLimit = 50 * time.Millisecond // how long one waits while another opens a connection
)

func (pipe *Pipeline) newRunners(n int, name string, lockTimeout time.Duration) *runners {
	s := &runners{open: make(chan *runner, n), closed: make(chan *runner, n), opening: make(chan struct{}, 1)}
	for i := range n {
		s.put(pipe.newRunner(fmt.Sprintf("%s %d", name, i+1), lockTimeout))
	}
	return s
}

func (s *runners) run(ctx context.Context, ops []*op, retry, waiting bool) (leftover, reaction, error) {
	r := s.take(ctx)
	defer s.put(r)
	return r.run(ctx, ops, retry, waiting)
}

// take prefers an open connection.
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
			_ = r.dial(ctx) // run dials again and reports the error
		}
		return r
	case <-limit.C:
		return s.takeAny()
	}
}

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

// drop closes the connections. No group may run any more.
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
	// Cancelling must end a running message.
	socket := pg.PgConn().Conn()
	r.unwatch = context.AfterFunc(work, func() { _ = socket.Close() })
	return nil
}

// settings returns the session settings of the pipeline, independent of the role's defaults. Statements may only use indexes, even if the
// statistics of a table are wrong. A node that stops within a transaction does not hold its locks for long. Answered commands are durable.
// Behind a pooler they apply to one transaction, because other clients share the session.
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

// identify restores the user and the role in the transaction after a hook. Parameters: both, as the connection began.
var identify = rows.Statement{SQL: "SELECT set_config('session_authorization', $1, true), set_config('role', $2, true)",
	OIDs: []uint32{25, 25}}

// restoreSQL removes what the user's SQL may have left in the session, except the prepared statements of the protocol.
const restoreSQL = `CLOSE ALL; RESET ALL; RESET SESSION AUTHORIZATION; RESET ROLE; UNLISTEN *; SELECT pg_advisory_unlock_all();
	DISCARD TEMP; DISCARD SEQUENCES; `

// preparedSQL lists the statements prepared in SQL.
const preparedSQL = `; SELECT name FROM pg_prepared_statements WHERE from_sql`

// restore resets the session after the user's SQL. A pooler resets its sessions itself.
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

// errHeadsFree ends a group that waited too long for a head that was free a moment later.
var errHeadsFree = &pgconn.PgError{Code: "40001", Message: "the logs can be written again"}

// headFailed returns the tenants whose heads are locked as a headError. tenants is the first parameter of the failed statement. For several
// tenants the database is queried.
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
