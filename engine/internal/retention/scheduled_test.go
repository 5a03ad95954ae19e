package retention_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/engine/internal/retention"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// What is due and stays, because this node decides it, does not hide what comes
// after it, though one look does not reach that far.
func TestARunnerGoesOnBehindWhatStays(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	c := newClock("2040-01-02")
	for workflow, n := range map[string]int{"decided": 350, "gone": 20} {
		exec(t, pool, `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at,
				phase, attempt, failures, revision, run_at, request, updated_at)
			SELECT 't', $1, n, sha256('x'), 'pending', $1, 't', gen_random_uuid(), 'a', $2, 'scheduled', 0, 0, 0, $2, '{}', $2
			FROM generate_series(1, $3::int) AS n`, workflow, c.now(), n)
	}
	c.skip(2 * day)
	r := runner(t, pool, "a", c, func(c *retention.Config) { c.Workflows, c.Batch = []string{"decided"}, 50 })
	eventually(t, "they are ended", func() bool { return r.Stats().Abandoned == 20 })
	assert.Equal(t, 350, ask[int](t, pool, "SELECT count(*) FROM pawl.command WHERE status = 'pending' AND workflow = 'decided'"),
		"those that stay are left")
}

// Nor does what is due and stays hide work that nobody knows.
func TestARunnerFindsUnknownWorkBehindWhatStays(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	c := newClock("2040-01-02")
	exec(t, pool, `INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, links, open, chain, created_at,
		updated_at)
		SELECT 't', md5(n::text)::uuid, 'gone', 1, 's', 2, '{}', json_build_object('in_flight', json_build_object('transition', 'a', 'scope',
			'gone', 'key', n::text),
			'effects', json_build_array(CASE n WHEN 21 THEN '"\u0000"' ELSE '{"b":1,"a":1.50}' END::json)), true, sha256('x'), $1, $1
		FROM generate_series(1, 21) AS n`, c.now())
	for _, scope := range []string{"known", "pawl:timer:1:late", "inbox:bank", "gone"} {
		exec(t, pool, `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, version, actor,
			created_at,
				phase, attempt, failures, revision, run_at, request, updated_at)
			SELECT 't', $1, n, sha256('x'), 'pending', CASE $1 WHEN 'known' THEN $1 ELSE 'gone' END, 'a',
				md5(n::text)::uuid, 2, 'a', $2,
				'working', 0, 0, 0, $2::timestamptz + n / 3 * interval '1 second' + CASE $1 WHEN 'gone' THEN interval '1 hour' ELSE '0' END, '{}', $2
			FROM generate_series(1, CASE $1 WHEN 'gone' THEN 21 ELSE 200 END) AS n`, scope, c.now())
	}
	c.skip(2 * day)
	r := runner(t, pool, "a", c, func(c *retention.Config) { c.Workflows, c.Batch = []string{"known"}, 50 })
	eventually(t, "they are ended", func() bool { return r.Stats().Abandoned == 20 })
	n := ask[int](t, pool, "SELECT count(*) FROM pawl.command WHERE status = 'pending' AND scope IN ('known', 'pawl:timer:1:late', "+
		"'inbox:bank')")
	assert.Equal(t, 600, n, "those that stay are left")
	n = ask[int](t, pool, `SELECT count(*) FROM pawl.command AS c JOIN pawl.instance AS i ON i.tenant = c.tenant AND i.id = c.instance
		WHERE c.status = 'pending' AND c.scope = 'pawl:late:' || i.id AND c.key = '2'
			AND i.links::text = format('{ "in_flight" : {"transition" : "a", "scope" : "%s", "key" : "2"}, "effects" : [{"b":1,"a":1.50}] }',
				c.scope)`)
	assert.Equal(t, 20, n, "instances go on where their workflow is known")
	assert.Equal(t, "pending", ask[string](t, pool, "SELECT status FROM pawl.command WHERE scope = 'gone' AND key = '21'"),
		"that whose links cannot be read")
	n = ask[int](t, pool, "SELECT count(*) FROM pawl.command WHERE scope = 'gone' AND code = 408 AND expires_at = finished_at + "+
		"interval '1 day'")
	assert.Equal(t, 20, n, "have the answer")
}
