package engine_test

import (
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/engine"
)

// still is a clock that several engines share, and that moves only when it is
// told to.
type still struct {
	mu  sync.Mutex
	now time.Time
}

// newStill begins now, as the database's clock does.
func newStill() *still { return &still{now: time.Now().UTC().Truncate(time.Microsecond)} }

func (c *still) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *still) skip(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *still) set(config *engine.Config) { config.Now = c.Now }

// retainSQL is what retention does with keys, at a time of the test's own.
const retainSQL = "SELECT FROM pawl.purge(batch => $1, moment => $2)"

func retain(t testing.TB, pool *pgxpool.Pool, now time.Time) {
	t.Helper()
	exec(t, pool, retainSQL, 1000, now)
}
