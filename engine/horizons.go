package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

// horizons are how long the keys of a workflow are good for, as its newest
// version here says.
func (r *registry) horizons(name string) workflow.Horizons {
	var declared workflow.Horizons
	if w := r.find(name, 0); w != nil {
		declared = w.Horizons
	}
	return declared.Resolve(r.replay)
}

// recordHorizonsSQL writes down those that have changed, in one order on every
// node. A node that has only an older version of a workflow than another leaves
// its row alone. Parameters: workflows, their newest versions here, and in
// microseconds how long answers, tombstones (NULL: for ever) and history (NULL:
// for ever; 0: none) are kept.
const recordHorizonsSQL = `
INSERT INTO pawl.horizon AS h (workflow, replay, tombstone, history, history_kept)
SELECT u.workflow, u.replay * interval '1 microsecond', u.tombstone * interval '1 microsecond',
	u.history IS DISTINCT FROM 0, nullif(u.history, 0) * interval '1 microsecond'
FROM unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[], $5::bigint[]) AS u(workflow, version, replay, tombstone, history)
WHERE NOT EXISTS (SELECT FROM pawl.definition d WHERE d.workflow = u.workflow AND d.version > u.version)
ORDER BY u.workflow
ON CONFLICT (workflow) DO UPDATE SET replay = excluded.replay, tombstone = excluded.tombstone,
	history = excluded.history, history_kept = excluded.history_kept
WHERE (h.replay, h.tombstone, h.history, h.history_kept)
	IS DISTINCT FROM (excluded.replay, excluded.tombstone, excluded.history, excluded.history_kept)`

// recordHorizons tells the database, for retention and for callers that speak
// only SQL.
func (r *registry) recordHorizons(ctx context.Context, pool *pgxpool.Pool, schemaName string) error {
	names, versions := make([]string, len(r.newest)), make([]int32, len(r.newest))
	replays, tombstones, histories := make([]int64, len(r.newest)), make([]*int64, len(r.newest)), make([]*int64, len(r.newest))
	for i, w := range r.newest {
		h := r.horizons(w.Name)
		names[i], versions[i], replays[i] = w.Name, int32(w.Version), h.Replay.Microseconds()
		tombstones[i], histories[i] = microseconds(h.Tombstone), microseconds(h.History)
	}
	if _, err := pool.Exec(ctx, schema.In(schemaName, recordHorizonsSQL), names, versions, replays, tombstones, histories); err != nil {
		return fmt.Errorf("record horizons: %w", err)
	}
	return nil
}

// microseconds is nil for ever.
func microseconds(d time.Duration) *int64 {
	if d == workflow.Forever {
		return nil
	}
	n := d.Microseconds()
	return &n
}
