package relay_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
)

// A tenant with too many instances waiting for an operator receives nothing new until there are
// fewer. Other tenants do.
func TestWaitingInstancesDoNotBlockOtherTenants(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := poolOf(t, url, nil)
	const held = 100_001
	exec(t, pool, `INSERT INTO pawl.outbox_sink (name) VALUES ('main')`)
	exec(t, pool, `INSERT INTO pawl.log VALUES ('big', $1)`, held)
	exec(t, pool, `INSERT INTO pawl.outbox_cursor (tenant, sink, position, updated_at) VALUES ('big', 'main', $1, now())`, held)
	exec(t, pool, `INSERT INTO pawl.outbox_dead (tenant, sink, position, type, ordinal, workflow, instance, status, kind, failure,
		attempts, created_at, updated_at)
		SELECT 'big', 'main', i, 'a.b', 0, 'a', gen_random_uuid(), 'waiting', 'permanent', 'no', 1, now(), now()
		FROM generate_series(1, $1::int) i`, held)
	publish(t, pool, "big", "xyz")
	to := &receiver{}
	n := startNode(t, url, quick("main", to, func(s *relay.Sink) { s.Exhausted = relay.HoldInstance }))
	cursorReaches(t, pool, "main", tenant, publish(t, pool, tenant, "abc", n))
	table := relay.NewTable(pool, same)
	eventually(t, "the status says whose they are", func() bool {
		list, err := table.Sinks(t.Context(), "")
		return err == nil && strings.Contains(list[0].Failure, `"big"`)
	})
	assert.Equal(t, int64(held), cursor(t, pool, "main", "big"), "the tenant's cursor is at")
	exec(t, pool, "DELETE FROM pawl.outbox_dead WHERE position > 10")
	_, err := table.Skip(t.Context(), inspect.DeadFilter{Sink: "main", Tenant: "big", Position: 1}, "ann", "gone")
	require.NoError(t, err)
	n.Wake()
	cursorReaches(t, pool, "main", "big", held+3)
}
