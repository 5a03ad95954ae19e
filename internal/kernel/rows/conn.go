package rows

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// ValueError is the error of a row function for a value from the database. The connection stays usable.
type ValueError struct{ Err error }

func (e *ValueError) Error() string { return e.Err.Error() }

func (e *ValueError) Unwrap() error { return e.Err }

// Conn sends statements in pipelined messages on one connection, and prepares each statement on first use. It is not safe for concurrent
// use.
type Conn struct {
	pg       *pgconn.PgConn
	prepared map[*Statement]*pgconn.StatementDescription
	unnamed  bool

	queue  []queued
	failed queued
}

type queued struct {
	stmt   *Statement
	params [][]byte
	row    func(*Row) error
}

// NewConn requires a connection without a pipeline in progress.
func NewConn(pg *pgconn.PgConn) *Conn {
	return &Conn{pg: pg, prepared: map[*Statement]*pgconn.StatementDescription{}}
}

// NewUnnamedConn returns a Conn that leaves no prepared statements on a shared connection.
func NewUnnamedConn(pg *pgconn.PgConn) *Conn { return &Conn{pg: pg, unnamed: true} }

// Queue adds a statement to the next message. row is called for each row, and may be nil. Parameters and statement must not change until
// Send returns.
func (c *Conn) Queue(s *Statement, params [][]byte, row func(*Row) error) {
	c.queue = append(c.queue, queued{s, params, row})
}

// Failed returns the failed statement of the last message with its parameters, or nil.
func (c *Conn) Failed() (*Statement, [][]byte) { return c.failed.stmt, c.failed.params }

// Forget drops queued statements.
func (c *Conn) Forget() {
	clear(c.queue)
	c.queue = c.queue[:0]
}

// roundTrip bounds one message and its answers.
const roundTrip = 60 * time.Second

var binaryFormat = []int16{1}

// Send sends the queued statements as one message, reads their results, and returns the first error. After an error of the database the
// rest of the message was skipped. After a *ValueError everything was executed. After any other error the connection is closed.
//
// A context that cannot end is replaced by a deadline, because watching a context costs a goroutine per message.
func (c *Conn) Send(ctx context.Context) error {
	queue := c.queue
	defer c.Forget() // with what the parameters share memory with
	if err := c.prepare(ctx, queue); err != nil {
		return err
	}
	timed := ctx.Done() == nil
	if timed {
		if err := c.pg.Conn().SetDeadline(time.Now().Add(roundTrip)); err != nil {
			return fmt.Errorf("set deadline: %w", err)
		}
	}
	p := c.pg.StartPipeline(ctx)
	for _, q := range queue {
		if c.unnamed {
			p.SendQueryParams(q.stmt.SQL, q.params, q.stmt.OIDs, binaryFormat, binaryFormat)
		} else {
			p.SendQueryStatement(c.prepared[q.stmt], q.params, binaryFormat, binaryFormat)
		}
	}
	err := p.Sync()
	c.failed = queued{}
	for i := 0; err == nil && i < len(queue); i++ {
		if err = readResult(p, queue[i].row); err != nil {
			c.failed = queue[i]
		}
	}
	if closeErr := p.Close(); err == nil {
		err = closeErr
	}
	if timed && !c.pg.IsClosed() { // also after an error: the next user of the connection sets its own deadline
		if clearErr := c.pg.Conn().SetDeadline(time.Time{}); err == nil && clearErr != nil {
			err = fmt.Errorf("clear deadline: %w", clearErr)
		}
	}
	return err
}

func readResult(p *pgconn.Pipeline, row func(*Row) error) error {
	results, err := p.GetResults()
	if err != nil {
		return err
	}
	reader, ok := results.(*pgconn.ResultReader)
	if !ok {
		return errors.New("the connection answers out of step")
	}
	var rowErr error
	for reader.NextRow() {
		if row == nil || rowErr != nil {
			continue
		}
		r := Row{values: reader.Values()}
		if rowErr = row(&r); rowErr == nil {
			rowErr = r.err
		}
	}
	if _, err := reader.Close(); err != nil {
		return err
	}
	if rowErr != nil {
		return &ValueError{rowErr}
	}
	return nil
}

// prepare prepares the statements that are new on this connection.
func (c *Conn) prepare(ctx context.Context, queue []queued) error {
	if c.unnamed {
		return nil
	}
	for _, q := range queue {
		if c.prepared[q.stmt] != nil {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, roundTrip)
		name := fmt.Sprintf("pawl_%d", len(c.prepared))
		d, err := c.pg.Prepare(bounded, name, q.stmt.SQL, q.stmt.OIDs)
		cancel()
		if err != nil {
			return err
		}
		c.prepared[q.stmt] = d
	}
	return nil
}
