package bench

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// aged is a scenario of callers who flip orders of their own while a snapshot is open that is
// older than the last Config.Aged commands: no version of any row goes away meanwhile.
// It is measured again after the snapshot has ended, as long afterwards as it is measured.
func aged(name string, n int) *scenario {
	return &scenario{name: name, floor: submitMost, run: func(ctx context.Context, e *env) (_ *sample, err error) {
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
		if err == nil {
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
		s.all += before
		after, err := e.drive(ctx, callers)
		if err == nil {
			s.all, s.after = s.all+after.all, after.rate()
		}
		return s, err
	}}
}
