package schema_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/sqlstate"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
)

// trial runs a row of the table of SQLSTATEs like a caller of the SQL functions: a transaction that claims a key, does its work and
// completes the command. The work is a row of the table effect, so that its rows count the effects.
type trial struct {
	pool    *pgxpool.Pool
	blocked bool // the obstacle exists
	options pgx.TxOptions

	// prepare creates the obstacle and returns a function that removes it; nil: only blocked.
	prepare func(t *testing.T, s *trial) (remove func())
	// before runs first in the transaction while the obstacle exists.
	before func(ctx context.Context, tx pgx.Tx) error
	// work is the work on the key; nil: claim, effect, succeed.
	work func(ctx context.Context, s *trial, tx pgx.Tx, key string) error
	// loses drops the reply to the commit.
	loses bool
}

const effects = `CREATE TABLE effect (key text PRIMARY KEY)`

// do is the work of most trials.
func do(ctx context.Context, _ *trial, tx pgx.Tx, key string) error {
	c, err := claim(ctx, tx, key, "request")
	if err != nil || c.Outcome == "replay" {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO effect VALUES ($1)`, key); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `SELECT pawl.succeed('s', $1, $2)`, key, c.Attempt)
	return err
}

// query returns a trial whose work is a statement with the key as its parameter, and an effect.
func query(sql string) func(context.Context, *trial, pgx.Tx, string) error {
	return func(ctx context.Context, _ *trial, tx pgx.Tx, key string) error {
		if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeExec, key); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO effect VALUES ($1) ON CONFLICT DO NOTHING`, key)
		return err
	}
}

// raising returns a trial whose server raises the SQLSTATE during the work.
func raising(state string) *trial {
	return &trial{before: func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DO $$ BEGIN RAISE EXCEPTION 'so it is' USING ERRCODE = '`+state+`'; END $$`)
		return err
	}}
}

// heldWith returns a trial with transaction settings while another transaction holds the key.
func heldWith(settings string) *trial {
	return &trial{
		prepare: func(t *testing.T, s *trial) func() {
			holder := begin(t, s.pool)
			wantClaim(t, holder, "k", "request", "new 1")
			return func() { _ = holder.Rollback(t.Context()) }
		},
		before: func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, settings); return err },
	}
}

// earlier returns a trial after committed statements.
func earlier(work func(context.Context, *trial, pgx.Tx, string) error, statements ...string) *trial {
	return &trial{work: work, prepare: func(t *testing.T, s *trial) func() {
		for _, sql := range statements {
			exec(t, s.pool, sql)
		}
		return func() {}
	}}
}

// run runs one transaction of the caller.
func (s *trial) run(t *testing.T, key string) (err error) {
	t.Helper()
	ctx := t.Context()
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted}
	if s.blocked {
		options = s.options
	}
	conn, err := s.pool.Acquire(ctx)
	require.NoError(t, err)
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, options)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(ctx) }()
	if err := s.begin(ctx, tx); err != nil {
		return err
	}
	if err := s.workOn(ctx, tx, key); err != nil {
		return err
	}
	err = tx.Commit(ctx)
	if err == nil && s.blocked && s.loses {
		return &pgconn.PgError{Code: "08006"}
	}
	return err
}

func (s *trial) begin(ctx context.Context, tx pgx.Tx) error {
	if !s.blocked || s.before == nil {
		return nil
	}
	return s.before(ctx, tx)
}

func (s *trial) workOn(ctx context.Context, tx pgx.Tx, key string) error {
	if s.work == nil {
		return do(ctx, s, tx, key)
	}
	return s.work(ctx, s, tx, key)
}

// trials are the trials by the row's SQLSTATE and constraints.
var trials = map[string]func() *trial{
	"08xxx": func() *trial { return &trial{loses: true} },
	"0A000": func() *trial { return earlier(query(moving("pay", `1, 'paid', '{}'`)), ordered) },
	"22xxx": func() *trial {
		return earlier(query(`SELECT pawl.claim('s', $1, sha256('request'), lease => '0 s')`))
	},
	"23502": func() *trial {
		return earlier(query(moving("ship", `1, 'shipped', '{}', events => '[{"type":"a"}]'`)), ordered)
	},
	"23505 command_pkey":             waits,
	"23505 instance_pkey audit_pkey": func() *trial { return earlier(placeOrder, ordered) },
	"23505": func() *trial {
		return earlier(func(ctx context.Context, s *trial, tx pgx.Tx, key string) error {
			if err := do(ctx, s, tx, key); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `INSERT INTO effect VALUES ('taken')`)
			return err
		}, `INSERT INTO effect VALUES ('taken')`)
	},
	"23514 outbox": func() *trial {
		return &trial{work: placeOrder, prepare: func(t *testing.T, s *trial) func() {
			for _, partition := range partitions(t, s.pool, "outbox") {
				name, _, _ := strings.Cut(partition, " ")
				exec(t, s.pool, `DROP TABLE pawl.`+name)
			}
			return func() {}
		}}
	},
	"23514": func() *trial {
		return earlier(query(moving("ship", `1, 'shipped', '{}', attributes => '{"a": 1}'`)), ordered)
	},
	"25006": func() *trial { return &trial{options: pgx.TxOptions{AccessMode: pgx.ReadOnly}} },
	"25P02": func() *trial {
		return &trial{before: func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, `SELECT 1/0`)
			return nil
		}}
	},
	"25P03": func() *trial { return raising("25P03") },
	"40001": func() *trial {
		s := &trial{options: pgx.TxOptions{IsoLevel: pgx.RepeatableRead}}
		s.before = func(ctx context.Context, tx pgx.Tx) error { // take the snapshot before the key is claimed and completed
			if _, err := tx.Exec(ctx, `SELECT`); err != nil {
				return err
			}
			return pgx.BeginFunc(ctx, s.pool, func(other pgx.Tx) error { return do(ctx, s, other, "k") })
		}
		return s
	},
	"40P01": func() *trial {
		return &trial{work: func(ctx context.Context, s *trial, tx pgx.Tx, key string) error {
			if s.blocked {
				return raising("40P01").before(ctx, tx)
			}
			return do(ctx, s, tx, key)
		}}
	},
	"42501": func() *trial {
		return earlier(func(ctx context.Context, s *trial, tx pgx.Tx, key string) error {
			if _, err := tx.Exec(ctx, `SET LOCAL ROLE pg_read_all_settings`); err != nil {
				return err
			}
			return do(ctx, s, tx, key)
		})
	},
	"53xxx": func() *trial { return raising("53200") },
	"55000": func() *trial { return earlier(query(moving("giveup", `1, 'cancelled', '{}'`)), ordered) },
	"55P03": func() *trial { return heldWith(`SET LOCAL lock_timeout = '20ms'`) },
	"57014": func() *trial { return heldWith(`SET LOCAL statement_timeout = '50ms'`) },
	"57Pxx": func() *trial {
		return &trial{before: func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
			return err
		}}
	},
	"P4000": func() *trial { return earlier(query(`SELECT pawl.claim('', $1, sha256('request'))`)) },
	"P4001": func() *trial { return earlier(query(`SELECT pawl.claim('s', repeat($1, 256), sha256('request'))`)) },
	"P4002": func() *trial {
		return earlier(nil, `SELECT pawl.succeed('s', 'k', (pawl.claim('s', 'k', sha256('another'))).attempt)`)
	},
	"P4003": func() *trial { return earlier(query(`SELECT pawl.claim('s', $1, 'short')`)) },
	"P4010": func() *trial { return late("succeed", "") },
	"P4011": func() *trial { return late("fail", ", 'it failed'") },
	"P4029": func() *trial {
		return &trial{prepare: func(t *testing.T, s *trial) func() {
			exec(t, s.pool, `SELECT pawl.claim('s', 'k', sha256('request'), lease => '1 hour')`)
			return func() { exec(t, s.pool, `SELECT pawl.fail('s', 'k', 1, 'try again')`) }
		}}
	},
	"P4030": func() *trial {
		return earlier(nil, `SELECT pawl.fail('s', 'k', (pawl.claim('s', 'k', sha256('request'))).attempt, 'refused', true)`)
	},
	"P4050": func() *trial {
		return earlier(query(`SELECT pawl.consume('bank', $1, sha256('request'))`), `SELECT pawl.consume('bank', 'k', sha256('another'))`)
	},
	"P4099": func() *trial {
		return earlier(nil, `SELECT pawl.succeed('s', 'k', (pawl.claim('s', 'k', sha256('request'))).attempt, replay => '1 microsecond')`)
	},
}

// ordered creates the order for later transitions.
var ordered = strings.NewReplacer("$1", "'o'", "$2", `'`+payloadOf("o")+`'`, "$3", "'o'").Replace(placeInSQL)

// placeOrder places the order of the cart "o".
func placeOrder(ctx context.Context, _ *trial, tx pgx.Tx, key string) error {
	if _, err := tx.Exec(ctx, placeInSQL, pgx.QueryExecModeExec, key, payloadOf("o"), "o"); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO effect VALUES ($1)`, key)
	return err
}

// moving claims a key for a transition of that order, and executes it.
func moving(name, arguments string) string {
	return fmt.Sprintf(`SELECT pawl.transition('s', $1, c.attempt, %s) FROM pawl.claim('s', $1, sha256('request'), 'order', '%s', '%s') AS c`,
		arguments, name, idOf("o"))
}

// waits returns a trial with a key that another transaction has claimed without committing.
func waits() *trial {
	return &trial{prepare: func(t *testing.T, s *trial) func() {
		holder := begin(t, s.pool)
		require.NoError(t, do(t.Context(), s, holder, "k"))
		s.work = func(ctx context.Context, s *trial, tx pgx.Tx, key string) error {
			pid := tx.Conn().PgConn().PID()
			done := make(chan error, 1)
			go func() { done <- do(ctx, s, tx, key) }()
			if s.blocked {
				pgtest.WaitBlockedPID(t, s.pool, pid)
				commit(t, holder)
			}
			return <-done
		}
		return func() {}
	}}
}

// late returns a trial that completes its command after another attempt took over.
func late(function, arguments string) *trial {
	return &trial{prepare: func(t *testing.T, s *trial) func() {
		exec(t, s.pool, `SELECT pawl.claim('s', 'k', sha256('request'), lease => '1 microsecond')`)
		exec(t, s.pool, `SELECT pawl.claim('s', 'k', sha256('request'), lease => '1 hour')`)
		s.work = func(ctx context.Context, s *trial, tx pgx.Tx, key string) error {
			if !s.blocked {
				return do(ctx, s, tx, key)
			}
			_, err := tx.Exec(ctx, `SELECT pawl.`+function+`('s', 'k', 1`+arguments+`)`)
			return err
		}
		return func() { exec(t, s.pool, `INSERT INTO effect VALUES ('k'); SELECT pawl.succeed('s', 'k', 2)`) }
	}}
}

func nameOf(r *sqlstate.Row) string { return strings.Join(append([]string{r.State}, r.On...), " ") }

// The advice of each row of docs/sqlstates.md is followed for a real error.
func TestSQLStatesFromSQL(t *testing.T) {
	t.Parallel()
	for i := range sqlstate.Rows {
		row := &sqlstate.Rows[i]
		t.Run(nameOf(row), func(t *testing.T) {
			t.Parallel()
			make := trials[nameOf(row)]
			require.NotNil(t, make, "the row has no trial")
			s := make()
			s.pool, s.blocked = pgtest.DirectTo(t, pgtest.Pool(t)), true
			exec(t, s.pool, effects)
			started(t, s.pool)
			remove := func() {}
			if s.prepare != nil {
				remove = s.prepare(t, s)
			}
			s.follow(t, row, func() { remove(); s.blocked = false })
		})
	}
}

// follow causes the error and follows the advice of its row.
func (s *trial) follow(t *testing.T, row *sqlstate.Row, remove func()) {
	if row.Where == sqlstate.InFunction {
		assert.NoError(t, s.run(t, "k"), "the function is to deal with it")
		s.wantOne(t, "k")
		return
	}
	if row.Where == sqlstate.AtTransaction {
		s.wantWithinVain(t, row)
	} else {
		s.wantRow(t, row, s.run(t, "k"))
		s.wantRow(t, row, s.run(t, "k")) // immediate retry
	}
	if row.Where == "" {
		remove()
		s.wantRow(t, row, s.run(t, "k")) // later retry
		if row.Key == sqlstate.NewKey && !strings.HasPrefix(row.State, "23505") {
			assert.NoError(t, s.run(t, "k-2"), "with a new key")
			s.wantOne(t, "k-2")
		}
		return
	}
	remove()
	for range 2 {
		assert.NoErrorf(t, s.run(t, "k"), "with the same key, %s", row.Where)
		s.wantOne(t, "k")
	}
}

func (s *trial) wantRow(t *testing.T, row *sqlstate.Row, err error) {
	t.Helper()
	e, ok := errors.AsType[*pgconn.PgError](err)
	assert.Truef(t, ok && sqlstate.Find(e, schema.Default) == row, "got %v, want an error of the row", err)
}

// wantWithinVain expects the error twice in one transaction, with a savepoint before each attempt.
func (s *trial) wantWithinVain(t *testing.T, row *sqlstate.Row) {
	t.Helper()
	ctx := t.Context()
	tx, err := s.pool.BeginTx(ctx, s.options)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(ctx) }()
	require.NoError(t, s.begin(ctx, tx))
	for range 2 {
		point, err := tx.Begin(ctx)
		if err == nil {
			err = s.workOn(ctx, point, "k")
			_ = point.Rollback(ctx)
		}
		s.wantRow(t, row, err)
	}
}

func (s *trial) wantOne(t *testing.T, key string) {
	t.Helper()
	assert.Equalf(t, 1, ask[int](t, s.pool, `SELECT count(*) FROM effect WHERE key = $1`, key), "key %s has effects", key)
}
