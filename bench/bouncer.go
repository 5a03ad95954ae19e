package bench

import (
	"context"

	"github.com/pawlhq/pawl/internal/localpg"
)

// bouncerSessions is how many sessions of the server PgBouncer has for the
// engine, as by its default.
const bouncerSessions = 20

// throughBouncer are the scenarios of an engine behind PgBouncer; none where that
// is not installed.
func throughBouncer() []*scenario {
	if !localpg.HasBouncer() {
		return nil
	}
	return []*scenario{
		behindBouncer(submitting(pooledOne, floorOne, 1, flips, false)),
		behindBouncer(submitting(pooledMost, floorMany, 256, flips, false)),
	}
}

// behindBouncer has the scenario's engine connect through a PgBouncer in
// transaction mode that it starts, and ends, for each round.
func behindBouncer(s *scenario) *scenario {
	run := s.run
	s.run = func(ctx context.Context, e *env) (_ *sample, err error) {
		b, err := localpg.StartBouncer(ctx, e.db.url, bouncerSessions)
		if err != nil {
			return nil, err
		}
		defer func() {
			if stopErr := b.Stop(); err == nil {
				err = stopErr
			}
		}()
		through, db := *e, *e.db
		db.url = b.Through(db.url)
		through.db = &db
		return run(ctx, &through)
	}
	return s
}
