package relay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
)

// manyTenants makes logs of n tenants, t0001 and so on, with two events each, that the named sinks
// have received up to a position.
func manyTenants(t testing.TB, pool *pgxpool.Pool, n int, got int64, sinks ...string) {
	t.Helper()
	exec(t, pool, fmt.Sprintf(`
INSERT INTO pawl.log SELECT 't' || lpad(n::text, 4, '0'), 2 FROM generate_series(1, %d) AS n;
INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
SELECT tenant, p, 'order.0', 0, 'order', '00000000-0000-0000-0000-000000000061', p, 'move', 's', now()
FROM pawl.log, generate_series(1, 2) AS p;
INSERT INTO pawl.outbox_sink (name) SELECT unnest('{%s}'::text[]);
INSERT INTO pawl.outbox_cursor (tenant, sink, position, updated_at) SELECT tenant, name, %d, now() FROM pawl.log, pawl.outbox_sink;
ANALYZE`, n, strings.Join(sinks, ","), got))
}

// sinksNamed returns sinks with one receiver each.
func sinksNamed(names ...string) (sinks []relay.Sink, to []*receiver) {
	for _, name := range names {
		to = append(to, &receiver{})
		sinks = append(sinks, quick(name, to[len(to)-1]))
	}
	return sinks, to
}

// passes counts the steps of scans.
func (n *node) passes() int  { return n.asked.Count("x.tenant = l.tenant AND x.sink = $1") }
func (n *node) lookUps() int { return n.asked.Count("AS u(sink, tenant)") }
func (n *node) allHeads() int {
	all := "SELECT tenant, head FROM pawl.log"
	return n.asked.Count(all) - n.asked.Count(all+" WHERE")
}

// An unknown tenant costs one lookup of its own cursors, without a poll.
func TestUnknownTenantCostsOneLookup(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	names := []string{"a", "b", "c", "d", "e"}
	manyTenants(t, poolOf(t, url, nil), 2000, 2, names...)
	sinks, to := sinksNamed(names...)
	n := newNode(t, url, func(c *relay.Config) { c.Every, c.Lease = time.Hour, 3*time.Hour }, sinks...)
	n.start(t)
	eventually(t, "every sink has passed over the tenants", func() bool { return n.passes() == len(names) })
	polls := n.Stats().Polls
	publish(t, n.pool, "t1234", "a", n)
	for _, r := range to {
		r.wants(t, 1)
	}
	assert.Truef(t, n.lookUps() != 0 && n.passes() == len(names) && n.allHeads() == 1 && n.Stats().Polls == polls,
		"%d looks, %d passes, the heads %d times, %d polls more", n.lookUps(), n.passes(), n.allHeads(), n.Stats().Polls-polls)
}

// The poll detects logs that grew without a notification, for all sinks with one read of the last
// positions. An idle node runs one query per poll and keeps no logs in memory.
func TestPollDetectsUnnoticedGrowth(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	names := []string{"a", "b", "c"}
	manyTenants(t, poolOf(t, url, nil), 2000, 2, names...)
	sinks, to := sinksNamed(names...)
	n := newNode(t, url, func(c *relay.Config) { c.Every = 100 * time.Millisecond }, sinks...)
	n.start(t)
	for round := 1; round <= 2; round++ {
		publish(t, n.pool, "t0007", "a")
		publish(t, n.pool, "new", "a")
		for _, r := range to {
			r.wants(t, 2*round)
		}
		eventually(t, "no log is in memory", func() bool { return n.Logs() == 0 })
		eventually(t, "a poll is all that is asked", func() bool {
			asked, heads := n.asked.Count(""), n.allHeads()
			polls := n.Stats().Polls
			eventually(t, "it polls", func() bool { return n.Stats().Polls >= polls+5 })
			return int64(n.asked.Count("")-asked) <= n.Stats().Polls-polls+1 && n.allHeads() == heads
		})
	}
	assert.Equal(t, len(names), n.passes(), "passes over all tenants")
	for _, r := range to {
		assert.Equal(t, 0, r.inOrder(t), "delivered twice")
	}
}

// A new sink receives the logs of all tenants, step by step; a restricted sink does not scan the
// others.
func TestScanTakesSeveralSteps(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	url := pgtest.URL(t)
	manyTenants(t, poolOf(t, url, nil), 2500, 1, "all", "few")
	sinks, to := sinksNamed("all", "few")
	sinks[1].Tenants = []string{"t0003", "t2400"}
	n := newNode(t, url, func(c *relay.Config) { c.Every, c.Lease = time.Hour, 3*time.Hour }, sinks...)
	n.start(t)
	to[0].wants(t, 2500)
	to[1].wants(t, 2)
	eventually(t, "no log is in memory", func() bool { return n.Logs() == 0 })
	assert.Equal(t, 2, len(to[1].got()), "the one that is for two tenants events")
}
