package relay

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/workflow"
)

// register makes a sink known to the database, and says where it begins if it is
// new.
func (r *Relay) register(ctx context.Context, s *Sink) error {
	var cut int64
	err := pgx.BeginFunc(ctx, r.config.Pool, func(tx pgx.Tx) error {
		made, err := tx.Exec(ctx, r.sql.register, s.Name, s.Tenants)
		switch {
		case err != nil:
		case made.RowsAffected() == 0:
			_, err = tx.Exec(ctx, r.sql.restrict, s.Name, s.Tenants)
		case s.FromNow:
			_, err = tx.Exec(ctx, r.sql.fromNow, s.Name)
		default:
			made, err = tx.Exec(ctx, r.sql.fromOldest, s.Name, s.Tenants)
			cut = made.RowsAffected()
		}
		return err
	})
	if err != nil {
		return &workflow.Error{Code: workflow.Unavailable, Message: "the sinks could not be registered; try again", Cause: err}
	}
	if cut > 0 {
		r.config.Log.Warn("a new sink does not get the events that retention has removed; it begins with the oldest that are there",
			"sink", s.Name, "tenants", cut)
	}
	return nil
}
