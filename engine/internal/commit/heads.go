package commit

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/internal/kernel/rows"
)

// errHeadsFree is the end of a group that waited too long for a head which was free a
// moment later.
var errHeadsFree = &pgconn.PgError{Code: "40001", Message: "the logs can be written again"}

// headFailed names the tenants whose logs could not be moved, where a lock was the reason.
// tenants is the first parameter of the statement that failed. Where that had several it
// does not tell, and the database is asked.
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
