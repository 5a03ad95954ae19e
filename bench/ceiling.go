package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// ceilingGroup is how many commands the ceiling commits at once.
const ceilingGroup = 100

// The ceiling is the rate of the database without any checks: the rows that the engine writes, a hundred commands in each transaction, set
// by set, in one message and one answer. It reads nothing, decides nothing and hashes nothing. Its callers know the versions because there
// are no other writers, and number their transitions in the program; it writes the log's last position, since the engine does.
//
// Each command u has the instance, its version, position, scope, key, business key and states; the other columns are constant.
const ceilingSource = ` FROM unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[])
	AS u(id, version, position, scope, key, business_key, "from", "to") `

var ceilingStatements = []struct {
	sql  string
	rest func(c *ceiling, now time.Time) []any // parameters from $10 on
}{
	{`UPDATE {pawl}.instance i SET state = u.to, version = u.version, bucket = u.version / 4, data = $10, chain = $11,
		updated_at = $12` + ceilingSource + `WHERE i.tenant = $1 AND i.id = u.id`,
		func(c *ceiling, now time.Time) []any { return []any{c.specimen.data, filler(c.n), now} }},
	{`INSERT INTO {pawl}.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, version, actor, code, state,
			created_at, finished_at, expires_at)
		SELECT $1, u.scope, u.key, $10, 'succeeded', 'order', 'flip', u.id, u.version, $11, 200, u.to, $12, $12, $13` + ceilingSource,
		func(c *ceiling, now time.Time) []any {
			return []any{filler(c.n), actor, now, now.Add(replayFor)}
		}},
	{`INSERT INTO {pawl}.audit (tenant, position, workflow, transition, instance, version, from_state, to_state, actor, payload, data,
			key, at, hash)
		SELECT $1, u.position, 'order', 'flip', u.id, u.version, u.from, u.to, $10, $11, $12, u.key, $13, $14` + ceilingSource,
		func(c *ceiling, now time.Time) []any {
			return []any{actor, c.specimen.payload, c.specimen.data, now, filler(c.n)}
		}},
	{`INSERT INTO {pawl}.outbox (tenant, position, type, ordinal, workflow, transition, instance, version, state, at, business_key)
		SELECT $1, u.position, $10, 0, 'order', 'flip', u.id, u.version, u.to, $11, u.business_key` + ceilingSource,
		func(c *ceiling, now time.Time) []any { return []any{c.specimen.eventType, now} }},
}

func ceilingScenario(name string, connections int) *scenario {
	return &scenario{name: name, floor: floorMany,
		open: func(ctx context.Context, e *env) ([]caller, error) {
			position := new(atomic.Int64)
			position.Store(int64(len(e.orders)))
			return e.connections(ctx, connections, func(conn *pgx.Conn, i int) (caller, error) {
				// As in the engine: whatever the statistics say, only indexes are probed.
				_, err := conn.Exec(ctx, `SET plan_cache_mode = force_generic_plan; SET jit = off;
				SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off`)
				own := share(e.orders, i, connections)
				c := &ceiling{in: e.db.in, conn: conn, number: i + 1, specimen: e.flip, orders: own, versions: make([]int64, len(own)),
					position: position}
				return c.call, err
			})
		}}
}

// ceiling is one connection's caller.
type ceiling struct {
	in       func(sql string) string
	conn     *pgx.Conn
	number   int
	specimen *specimen
	orders   []order
	versions []int64 // less one
	position *atomic.Int64
	n        int
}

// call commits one group.
func (c *ceiling) call(ctx context.Context) (int, error) {
	group := min(ceilingGroup, len(c.orders))
	now, columns := time.Now(), c.gather(group)
	var b pgx.Batch
	b.Queue("BEGIN")
	for i, s := range ceilingStatements {
		if i == 2 { // where the engine does
			b.Queue(c.in("UPDATE {pawl}.log SET head = head + $2 WHERE tenant = $1"), tenant, group)
		}
		b.Queue(c.in(s.sql), append(columns, s.rest(c, now)...)...)
	}
	b.Queue("COMMIT")
	results := c.conn.SendBatch(context.WithoutCancel(ctx), &b)
	var err error
	for range b.Len() {
		_, one := results.Exec()
		err = errors.Join(err, one)
	}
	if err = errors.Join(err, results.Close()); err != nil {
		return 0, fmt.Errorf("ceiling: %w", err)
	}
	return group, nil
}

// gather makes the parameters $1 to $9 of the next group.
func (c *ceiling) gather(group int) []any {
	ids := make([][16]byte, group)
	versions, positions := make([]int64, group), make([]int64, group)
	var texts [5][]string // scope, key, business key, from, to
	first := c.position.Add(int64(group)) - int64(group) + 1
	for i := range group {
		at := c.n % len(c.orders)
		c.n++
		c.versions[at]++
		o := &c.orders[at]
		ids[i], versions[i], positions[i] = o.id, c.versions[at]+1, first+int64(i)
		from, to := statePlaced, stateHeld
		if versions[i]%2 == 1 {
			from, to = to, from
		}
		for k, text := range []string{workflowName + ":" + o.id.String(), commandKey(c.number, c.n), o.key, string(from), string(to)} {
			texts[k] = append(texts[k], text)
		}
	}
	return []any{tenant, ids, versions, positions, texts[0], texts[1], texts[2], texts[3], texts[4]}
}
