package bench

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// aged is a scenario of callers who flip orders of their own, after Config.Aged commands.
// Where a snapshot has been open since before those, no version of any row has gone away; then
// it is measured again after the end of the snapshot, as long afterwards as it is measured.
func aged(name, floor string, n int, old bool) *scenario {
	return &scenario{name: name, floor: floor, run: func(ctx context.Context, e *env) (_ *sample, err error) {
		callers, err := submitting(name, "", n, flips, false).open(ctx, e)
		if err != nil {
			return nil, err
		}
		conn, err := e.db.connectAs(ctx, adminName)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
		snapshot, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err == nil && old {
			_, err = snapshot.Exec(ctx, "SELECT 1")
		}
		var before int64
		for err == nil && before < int64(e.Aged) {
			var m *sample
			if m, err = phase(ctx, callers, 0, e.Duration/5); err == nil {
				before += m.all
			}
		}
		if err != nil {
			return nil, err
		}
		s, err := e.drive(ctx, callers)
		if err == nil {
			err = snapshot.Rollback(ctx)
		}
		if err != nil {
			return nil, err
		}
		if s.all += before; !old {
			return s, nil
		}
		after, err := e.drive(ctx, callers)
		if err == nil {
			s.all, s.after = s.all+after.all, after.rate()
		}
		return s, err
	}}
}
