package rows

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

var (
	begin    = &Statement{SQL: "BEGIN"}
	rollback = &Statement{SQL: "ROLLBACK"}
	table    = &Statement{SQL: "CREATE TEMP TABLE seen (n bigint PRIMARY KEY)"}
	insert   = &Statement{SQL: "INSERT INTO seen VALUES ($1)", OIDs: []uint32{20}}
	list     = &Statement{SQL: "SELECT n FROM seen ORDER BY n"}
)

var errRow = errors.New("the reader does not like it")

func int8Param(n byte) [][]byte { return [][]byte{{0, 0, 0, 0, 0, 0, 0, n}} }

func send(t *testing.T, c *Conn) {
	t.Helper()
	require.NoError(t, c.Send(t.Context()))
}

func numbers(t *testing.T, c *Conn) []int64 {
	t.Helper()
	var got []int64
	c.Queue(list, nil, func(r *Row) error { got = append(got, r.Int8()); return r.Err() })
	send(t, c)
	return got
}

func prepared(t *testing.T, pg *pgx.Conn) int {
	t.Helper()
	var n int
	require.NoError(t, pg.QueryRow(t.Context(), "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'pawl%'",
		pgx.QueryExecModeSimpleProtocol).Scan(&n))
	return n
}

// Both kinds of connection do the same.
func eachKind(t *testing.T, test func(t *testing.T, pg *pgx.Conn, c *Conn)) {
	for name, kind := range map[string]func(*pgconn.PgConn) *Conn{"prepared": NewConn, "unnamed": NewUnnamedConn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pg := connect(t)
			c := kind(pg.PgConn())
			c.Queue(table, nil, nil)
			send(t, c)
			test(t, pg, c)
		})
	}
}

func TestAMessageIsDoneInOrder(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, _ *pgx.Conn, c *Conn) {
		var before, after []int64
		c.Queue(insert, int8Param(2), nil)
		c.Queue(list, nil, func(r *Row) error { before = append(before, r.Int8()); return nil })
		c.Queue(insert, int8Param(1), nil)
		c.Queue(list, nil, func(r *Row) error { after = append(after, r.Int8()); return nil })
		send(t, c)
		assert.Truef(t, slices.Equal(before, []int64{2}) && slices.Equal(after, []int64{1, 2}), "got %v and %v", before, after)
		send(t, c) // nothing is queued any more
		assert.Len(t, numbers(t, c), 2, "the message was sent twice")
	})
}

func TestConn_SkipsAfterError(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, pg *pgx.Conn, c *Conn) {
		ran := false
		c.Queue(begin, nil, nil)
		c.Queue(insert, int8Param(1), nil)
		c.Queue(insert, int8Param(1), nil)
		c.Queue(insert, int8Param(2), nil)
		c.Queue(list, nil, func(*Row) error { ran = true; return nil })
		err := c.Send(t.Context())
		e, ok := errors.AsType[*pgconn.PgError](err)
		require.Truef(t, ok && e.Code == "23505" && e.ConstraintName == "seen_pkey", "got %v, want the unique violation", err)
		assert.Truef(t, !ran && pg.PgConn().TxStatus() == 'E',
			"what came after the error ran: %v; the transaction is %q", ran, pg.PgConn().TxStatus())
		c.Queue(rollback, nil, nil)
		send(t, c)
		c.Queue(insert, int8Param(3), nil)
		send(t, c)
		got := numbers(t, c)
		assert.Truef(t, slices.Equal(got, []int64{3}), "got %v, want only what came after the rollback", got)
	})
}

func TestConn_ReaderError(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, _ *pgx.Conn, c *Conn) {
		calls := 0
		c.Queue(insert, int8Param(1), nil)
		c.Queue(insert, int8Param(2), nil)
		c.Queue(list, nil, func(*Row) error { calls++; return errRow })
		c.Queue(insert, int8Param(3), nil)
		assert.ErrorIs(t, c.Send(t.Context()), errRow)
		assert.Equalf(t, 1, calls, "the reader was called %d times after it failed", calls-1)
		c.Queue(list, nil, func(r *Row) error { r.UUID(); return nil })
		assert.EqualError(t, c.Send(t.Context()), "read column 1: it has 8 bytes, not 16", "a column read as the wrong type")
		got := numbers(t, c)
		assert.Truef(t, slices.Equal(got, []int64{1, 2, 3}), "got %v", got)
	})
}

func TestConn_PreparesOnce(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, pg *pgx.Conn, c *Conn) {
		for n := range byte(5) {
			c.Queue(insert, int8Param(n), nil)
			c.Queue(insert, int8Param(n+100), nil)
			send(t, c)
		}
		want := 2 // table and insert
		if c.unnamed {
			want = 0
		}
		assert.Equal(t, want, prepared(t, pg), "statements are prepared")
	})
}

func TestConn_PrepareError(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, _ *pgx.Conn, c *Conn) {
		c.Queue(insert, int8Param(1), nil)
		c.Queue(&Statement{SQL: "SELECT FROM nowhere"}, nil, nil)
		e, ok := errors.AsType[*pgconn.PgError](c.Send(t.Context()))
		assert.Truef(t, ok && e.Code == "42P01", "got %v, want undefined_table", e)
		assert.Empty(t, numbers(t, c), "a message that failed")
	})
}

func TestAClosedConnectionIsAnError(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, pg *pgx.Conn, c *Conn) {
		require.NoError(t, pg.Close(t.Context()))
		for _, ctx := range []context.Context{t.Context(), context.Background()} {
			c.Queue(insert, int8Param(1), nil)
			assert.Error(t, c.Send(ctx), "a closed connection took a message")
		}
	})
}

func TestAServerThatEndsTheConnectionIsAnError(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, pg *pgx.Conn, c *Conn) {
		c.Queue(insert, int8Param(1), nil)
		c.Queue(&Statement{SQL: "SELECT pg_terminate_backend(pg_backend_pid())"}, nil, nil)
		assert.Error(t, c.Send(context.Background()), "no error")
		assert.True(t, pg.IsClosed(), "the connection is still taken for open")
	})
}

func TestConn_CanceledContext(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]string{
		"while it runs":        "SELECT n FROM spot FOR UPDATE", // waits for the row
		"while it is prepared": "SELECT n FROM closed",          // waits for the table
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holder := pgtest.DirectPool(t)
			if _,
				err := holder.Exec(t.Context(), "CREATE TABLE closed (n int); CREATE TABLE spot (n int); INSERT INTO spot VALUES (1)"); err != nil {
				t.Fatal(err)
			}
			tx, err := holder.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(context.Background()) }()
			_, err = tx.Exec(t.Context(), "LOCK TABLE closed; SELECT FROM spot FOR UPDATE")
			require.NoError(t, err)
			pg, err := pgx.Connect(t.Context(), holder.Config().ConnString())
			require.NoError(t, err)
			defer func() { _ = pg.Close(context.Background()) }()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := NewConn(pg.PgConn())
			c.Queue(&Statement{SQL: read}, nil, nil)
			done := make(chan error, 1)
			go func() { done <- c.Send(ctx) }()
			pgtest.WaitBlockedPID(t, holder, pg.PgConn().PID())
			cancel()
			assert.ErrorIs(t, <-done, context.Canceled, "want context.Canceled")
			assert.True(t, pg.IsClosed(), "the connection is still taken for sound")
		})
	}
}

// deadlineConn remembers the deadline that its connection has.
type deadlineConn struct {
	net.Conn
	mu   sync.Mutex
	last time.Time
	set  int
}

func (d *deadlineConn) SetDeadline(at time.Time) error {
	d.mu.Lock()
	d.last = at
	d.set++
	d.mu.Unlock()
	return d.Conn.SetDeadline(at)
}

// A context that cannot end is replaced by a deadline, which must not stay on a shared connection, even after a failed message.
func TestADeadlineIsTakenBack(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig(pgtest.DirectURL(t))
	require.NoError(t, err)
	var socket *deadlineConn
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		plain, err := dial(ctx, network, addr)
		socket = &deadlineConn{Conn: plain}
		return socket, err
	}
	pg, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	defer func() { _ = pg.Close(context.Background()) }()
	for name, c := range map[string]*Conn{"prepared": NewConn(pg.PgConn()), "unnamed": NewUnnamedConn(pg.PgConn())} {
		for _, sql := range []string{"SELECT 1", "SELECT 1/0", "SELECT FROM nowhere", "SELECT 2"} {
			before := socket.set
			c.Queue(&Statement{SQL: sql}, nil, nil)
			err := c.Send(context.Background())
			assert.Equalf(t, (sql == "SELECT 1" || sql == "SELECT 2"), (err == nil), "%s, %s: %v", name, sql, err)
			assert.Truef(t, socket.last.IsZero(), "%s, %s: the deadline %s stays", name, sql, socket.last)
			assert.Falsef(t, socket.set == before && sql != "SELECT FROM nowhere", "%s, %s: no deadline was set", name, sql)
		}
	}
}
