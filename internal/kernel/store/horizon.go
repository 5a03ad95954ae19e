package store

const (
	// NewHorizonsSQL records the retention periods that are not set yet, in the same order on every node. Parameters: workflows, and in
	// microseconds the periods of answers, tombstones (NULL: unlimited) and history (NULL: unlimited; 0: none).
	NewHorizonsSQL = `
INSERT INTO {pawl}.horizon (workflow, replay, tombstone, history, history_kept)
SELECT u.workflow, u.replay * interval '1 microsecond', u.tombstone * interval '1 microsecond',
	u.history IS DISTINCT FROM 0, nullif(u.history, 0) * interval '1 microsecond'
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS u(workflow, replay, tombstone, history)
ORDER BY u.workflow ON CONFLICT (workflow) DO NOTHING`

	// KnownHorizonsSQL locks and reads what is written down. Parameter: workflows.
	KnownHorizonsSQL = `
SELECT workflow, (extract(epoch FROM replay) * 1000000)::bigint, (extract(epoch FROM tombstone) * 1000000)::bigint,
	CASE WHEN history THEN (extract(epoch FROM history_kept) * 1000000)::bigint ELSE 0 END
FROM {pawl}.horizon WHERE workflow = ANY ($1) ORDER BY workflow FOR NO KEY UPDATE`

	// GrowHorizonsSQL writes one down. Parameters: as those of NewHorizonsSQL.
	GrowHorizonsSQL = `
UPDATE {pawl}.horizon SET replay = $2::bigint * interval '1 microsecond', tombstone = $3::bigint * interval '1 microsecond',
	history = $4::bigint IS DISTINCT FROM 0, history_kept = nullif($4::bigint, 0) * interval '1 microsecond' WHERE workflow = $1`
)
