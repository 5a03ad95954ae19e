// Package clock is the database's clock as a node follows it. All nodes decide by
// it, so that a node whose own clock is wrong fires no timer early and expires no
// key late.
package clock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Clock tells the time of decisions. It is safe for concurrent use.
type Clock struct {
	fixed  func() time.Time // nil: the database's
	newest atomic.Pointer[reading]
}

// reading is what is known of the database's clock.
type reading struct {
	theirs time.Time
	at     time.Time // on the local monotonic clock, which changes of the wall clock do not affect
}

// New makes a clock that goes as now says, or, for nil, as the database's: until
// it is read first, as the system's.
func New(now func() time.Time) *Clock { return &Clock{fixed: now} }

// Now is the time in UTC, to the microsecond that the database keeps.
func (c *Clock) Now() time.Time {
	now := time.Now()
	if c.fixed != nil {
		now = c.fixed()
	} else if r := c.newest.Load(); r != nil {
		now = r.theirs.Add(time.Since(r.at))
	}
	return now.UTC().Truncate(time.Microsecond)
}

// Set takes note of what the database's clock said between two times on ours.
// What is known already stays where the two agree.
func (c *Clock) Set(theirs, sent, received time.Time) {
	trip := received.Sub(sent)
	r := &reading{theirs: theirs, at: sent.Add(trip / 2)}
	if old := c.newest.Load(); old != nil && old.theirs.Add(r.at.Sub(old.at)).Sub(theirs).Abs() <= trip+time.Millisecond {
		return
	}
	c.newest.Store(r)
}

// Read asks the database for the time.
func (c *Clock) Read(ctx context.Context, conn *pgx.Conn) error {
	var theirs time.Time
	sent := time.Now()
	if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&theirs); err != nil {
		return err
	}
	c.Set(theirs, sent, time.Now())
	return nil
}
