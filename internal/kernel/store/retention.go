package store

import "github.com/pawlhq/pawl/transitions"

// OldestExpirySQL returns the first end of a retention period.
const OldestExpirySQL = `SELECT expires_at FROM {pawl}.command WHERE expires_at IS NOT NULL ORDER BY expires_at LIMIT 1`

// NextExpiry returns the first end of a retention period not before a time, which is an SQL expression.
func NextExpiry(since string) string {
	return `SELECT expires_at FROM {pawl}.command WHERE expires_at >= ` + since + ` ORDER BY expires_at LIMIT 1`
}

// HistoryKeptSQL returns the time before which a month of the history must end to be dropped; no row if some workflow keeps it without
// limit, or none has a period. Parameter: now.
const HistoryKeptSQL = `
SELECT $1::timestamptz - max(history_kept) FROM {pawl}.horizon WHERE history HAVING bool_and(history_kept IS NOT NULL)`

// GiveUpSQL abandons work that no node has claimed for as long as its answer would be replayed, and whose workflow this node does not know.
// If its instance waits for it, a replacement command in Pawl's own scope takes its place, for a node that knows the workflow. Commands of
// messages are kept.
//
// One call reads a batch of the due work of each such activity in the order of the index, plus all with the last due time. It skips locked
// rows, and instances whose links PostgreSQL may not be able to read (a result with a NUL). It returns the position for the next call, NULL
// at the end, and the number of abandoned commands. Parameters: now, default retention period of answers in microseconds, known workflows,
// position, limit, answer, prefix of the scopes of replacements.
const GiveUpSQL = `
WITH RECURSIVE ` + activities + `,
looked AS MATERIALIZED (
	SELECT c.place, c.run_at, c.tenant, c.workflow, c.instance, c.request, c.phase = 'working' AND c.attempt = 0
		AND NOT starts_with(c.scope, '` + transitions.Reserved + `') AND NOT starts_with(c.scope, 'inbox:') AS unknown
	FROM activities AS a CROSS JOIN LATERAL (SELECT x.ctid AS place, x.* FROM {pawl}.command AS x
		WHERE x.run_at IS NOT NULL AND x.phase <> 'scheduled' AND x.workflow = a.workflow AND x.transition = a.transition
			AND (x.run_at, '') > ((SELECT $4::timestamptz), '')
			AND x.run_at <= $1::timestamptz - least($2::bigint * interval '1 microsecond', (SELECT min(h.replay) FROM {pawl}.horizon AS h))
		ORDER BY x.workflow, x.transition, x.run_at FETCH FIRST ($5::bigint) ROWS WITH TIES) AS c
	WHERE a.workflow <> ALL ($3::text[])
	ORDER BY c.run_at FETCH FIRST ($5::bigint) ROWS WITH TIES),
late AS MATERIALIZED (
	SELECT l.place, l.tenant, l.instance, k.replay, (l.request ->> 'tombstone_ns')::bigint AS tombstone
	FROM looked AS l LEFT JOIN {pawl}.horizon AS h ON h.workflow = l.workflow
	CROSS JOIN LATERAL (SELECT coalesce((l.request ->> 'replay_ns')::bigint / 1000 * interval '1 microsecond', h.replay,
		$2::bigint * interval '1 microsecond') AS replay) AS k
	WHERE l.unknown AND l.run_at <= $1 - k.replay
		AND NOT EXISTS (SELECT FROM {pawl}.paused AS p WHERE p.tenant = l.tenant AND p.workflow = l.workflow)),
held AS MATERIALIZED (
	SELECT c.place, c.tenant, c.scope, c.key, c.version, c.transition, l.instance, l.replay, l.tombstone, i.place AS home,
		i.links -> 'in_flight' ->> 'scope' = c.scope AND i.links -> 'in_flight' ->> 'key' = c.key AS waits, i.links,
		$7::text || l.instance AS late
	FROM late AS l
	CROSS JOIN LATERAL (SELECT x.ctid AS place, x.tenant, x.scope, x.key, x.version, x.transition FROM {pawl}.command AS x
		WHERE x.ctid = l.place AND x.phase = 'working' AND x.attempt = 0 AND x.run_at IS NOT NULL FOR UPDATE SKIP LOCKED) AS c
	CROSS JOIN LATERAL (SELECT x.ctid AS place, x.links FROM {pawl}.instance AS x
		WHERE x.tenant = l.tenant AND x.id = l.instance AND NOT x.paused AND strpos(coalesce(x.links::text, ''), '\u') = 0
		FOR NO KEY UPDATE SKIP LOCKED) AS i),
planted AS (
	INSERT INTO {pawl}.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, version, actor, created_at,
		phase, attempt, failures, revision, run_at, request, definition, updated_at)
	SELECT c.tenant, h.late, h.version::text, c.fingerprint, 'pending', c.workflow, c.transition, c.instance, c.version, c.actor, $1,
		'working', 0, 0, 0, $1, c.request, c.definition, $1
	FROM held AS h JOIN {pawl}.command AS c ON c.ctid = h.place WHERE h.waits),
linked AS (
	UPDATE {pawl}.instance AS i SET links = (SELECT json_object_agg(e.key, CASE e.key WHEN 'in_flight'
			THEN json_build_object('transition', h.transition, 'scope', h.late, 'key', h.version::text) ELSE e.value END)
				FROM json_each(h.links) AS e)
	FROM held AS h WHERE i.ctid = h.home AND h.waits),
ended AS (
	UPDATE {pawl}.command AS c SET status = 'failed_final', code = 408, body = $6::text, failure = 'no node claimed it in time',
		phase = NULL, request = NULL, run_at = NULL, revision = c.revision + 1, updated_at = $1, finished_at = $1, expires_at = $1 + h.replay,
		forget_at = CASE h.tombstone WHEN 9223372036854775807 THEN 'infinity'
			ELSE $1 + h.replay + h.tombstone / 1000 * interval '1 microsecond' END
	FROM held AS h WHERE c.ctid = h.place RETURNING 1)
SELECT CASE WHEN (SELECT count(*) FROM looked) >= $5 THEN (SELECT max(run_at) FROM looked) END, (SELECT count(*) FROM ended)
FROM {pawl}.durable()`

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
