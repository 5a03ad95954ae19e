// Package clock follows the database's clock, by which all nodes decide, so that a node whose own clock is wrong fires no timer early and
// expires no key late.
package clock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Clock returns the time of decisions. It is safe for concurrent use.
type Clock struct {
	fixed  func() time.Time // nil: the database's
	newest atomic.Pointer[reading]
}

// reading is a reading of the database's clock.
type reading struct {
	theirs time.Time
	at     time.Time // on the local monotonic clock, which changes of the wall clock do not affect
}

// New returns a clock that returns now(), or, for nil, the database's time; until its first reading, the system's.
func New(now func() time.Time) *Clock { return &Clock{fixed: now} }

// Now returns the time in UTC, to the microsecond as in the database.
func (c *Clock) Now() time.Time {
	now := time.Now()
	if c.fixed != nil {
		now = c.fixed()
	} else if r := c.newest.Load(); r != nil {
		now = r.theirs.Add(time.Since(r.at))
	}
	return now.UTC().Truncate(time.Microsecond)
}

// Set records a reading of the database's clock between two local times. A reading that agrees with the previous one is ignored.
func (c *Clock) Set(theirs, sent, received time.Time) {
	trip := received.Sub(sent)
	r := &reading{theirs: theirs, at: sent.Add(trip / 2)}
	if old := c.newest.Load(); old != nil && old.theirs.Add(r.at.Sub(old.at)).Sub(theirs).Abs() <= trip+time.Millisecond {
		return
	}
	c.newest.Store(r)
}

// Read reads the database's clock.
func (c *Clock) Read(ctx context.Context, conn *pgx.Conn) error {
	var theirs time.Time
	sent := time.Now()
	if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&theirs); err != nil {
		return err
	}
	c.Set(theirs, sent, time.Now())
	return nil
}
