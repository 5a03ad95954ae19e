package relay

import "github.com/pawlhq/pawl/internal/kernel/outbox"

// registerSQL inserts a sink if it is new. Parameters: sink, tenants.
const registerSQL = `INSERT INTO {pawl}.outbox_sink (name, tenants) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`

// restrictSQL sets the tenants of a sink. Parameters: sink, tenants.
const restrictSQL = `UPDATE {pawl}.outbox_sink SET tenants = $2 WHERE name = $1 AND tenants IS DISTINCT FROM $2`

// fromNowSQL sets the cursors of a new sink to the end of every log, including tenants that it may
// be configured for later. Parameter: sink.
const fromNowSQL = `
INSERT INTO {pawl}.outbox_cursor (tenant, sink, position, updated_at)
SELECT l.tenant, $1, l.head, clock_timestamp() FROM ` + outbox.Logs + ` l
ON CONFLICT (tenant, sink) DO NOTHING`

// fromOldestSQL sets the cursors of a new sink for logs whose first events were removed: before the
// oldest stored event, or at the end of the log. Parameters: sink, tenants.
var fromOldestSQL = `
INSERT INTO {pawl}.outbox_cursor (tenant, sink, position, updated_at)
SELECT l.tenant, $1, coalesce(o.position - 1, l.head), clock_timestamp()
FROM ` + outbox.Logs + ` l LEFT JOIN LATERAL (` + outbox.FirstAfter("position", "l.tenant", "0", "true") + `) AS o ON true
WHERE ($2::text[] IS NULL OR l.tenant = ANY ($2::text[])) AND coalesce(o.position - 1, l.head) > 0
ON CONFLICT (tenant, sink) DO NOTHING`

// pollSQL renews leases of a node that end soon and returns the state of its sinks. On request it
// returns the sum of the last positions of all logs; positions only grow, so any growth changes the
// sum. It does not wait for locks: leases of locked sinks are renewed by the next poll. Parameters:
// sinks, this node's tokens (0: not held), whether to return the sum, lease in microseconds.
const pollSQL = `
WITH kept AS (
	UPDATE {pawl}.outbox_sink AS s SET locked_until = clock_timestamp() + $4::bigint * interval '1 microsecond'
	FROM (SELECT found.* FROM unnest($1::text[], $2::bigint[]) AS u(name, token) CROSS JOIN LATERAL (
		SELECT x.ctid AS row FROM {pawl}.outbox_sink x
		WHERE x.name = u.name AND x.token = u.token AND x.locked_until < clock_timestamp() + $4::bigint * interval '0.7 microsecond'
		LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) AS found) AS u
	WHERE s.ctid = u.row
	RETURNING s.name)
SELECT s.name, s.token, s.revision, s.paused_at IS NOT NULL, s.locked_until IS NULL OR s.locked_until < clock_timestamp(),
	EXISTS (SELECT FROM kept WHERE kept.name = s.name),
	coalesce((SELECT sum(l.head) FROM ` + outbox.Logs + ` l WHERE $3::boolean), 0)::bigint
FROM unnest($1::text[]) AS u(name)
JOIN {pawl}.outbox_sink s ON s.name = u.name`

// behind is true if log l has events after cursor c, which may be NULL.
const behind = `l.head > coalesce(c.position, 0)`

// lookUpSQL returns which of the given logs have events after the cursors of the given sinks, by
// key. Like scanSQL it returns sink, tenant, cursor, last position and the sink's revision.
// Parameters: sinks and tenants of each pair.
var lookUpSQL = `
SELECT u.sink, u.tenant, coalesce(c.position, 0), l.head, s.revision
FROM unnest($1::text[], $2::text[]) AS u(sink, tenant)` + outbox.JoinHead("u.tenant") + `
CROSS JOIN LATERAL (SELECT x.revision FROM {pawl}.outbox_sink x WHERE x.name = u.sink LIMIT 1) AS s
LEFT JOIN LATERAL (SELECT x.position FROM {pawl}.outbox_cursor x WHERE x.tenant = u.tenant AND x.sink = u.sink LIMIT 1) AS c ON true
WHERE ` + behind

// scanSQL is a step of a scan for a sink: the logs with events after its cursors, by tenant.
// Parameters: sink, last tenant of the previous step, tenants of the sink or NULL, limit.
const scanSQL = `
SELECT s.name, l.tenant, coalesce(c.position, 0), l.head, s.revision
FROM {pawl}.outbox_sink s
JOIN ` + outbox.Logs + ` l ON l.tenant > $2 AND ($3::text[] IS NULL OR l.tenant = ANY ($3::text[]))
LEFT JOIN LATERAL (SELECT x.position FROM {pawl}.outbox_cursor x WHERE x.tenant = l.tenant AND x.sink = $1 LIMIT 1) AS c ON true
WHERE s.name = $1 AND ` + behind + `
ORDER BY l.tenant LIMIT $4`

// claimSQL claims free sinks, unless they changed since the poll or are locked. It returns the
// nodes that did not release them. Parameters: node, sinks, their tokens in the poll, lease in
// microseconds.
const claimSQL = `
UPDATE {pawl}.outbox_sink AS s SET token = s.token + 1, claimed_by = $1, claimed_at = clock_timestamp(),
	locked_until = clock_timestamp() + $4::bigint * interval '1 microsecond'
FROM (SELECT found.* FROM unnest($2::text[], $3::bigint[]) AS u(name, token) CROSS JOIN LATERAL (
	SELECT x.ctid AS row, x.claimed_by AS taken FROM {pawl}.outbox_sink x
	WHERE x.name = u.name AND x.token = u.token AND x.paused_at IS NULL AND (x.locked_until IS NULL OR x.locked_until < clock_timestamp())
	LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) AS found) AS u
WHERE s.ctid = u.row
RETURNING s.name, s.token, s.revision, coalesce(u.taken, '')`

// renewSQL starts each batch. It locks the sink's row, which blocks takeovers and moves of cursors,
// renews or releases the lease and updates counters. The batch has no effect unless the token is
// the newest. Parameters: sink, token, lease in microseconds, delivered, failed, parked, receiver
// failures in a row, last failure, whether to release, reason of a pause.
const renewSQL = `
UPDATE {pawl}.outbox_sink SET
	locked_until = CASE WHEN NOT $9 THEN clock_timestamp() + $3::bigint * interval '1 microsecond' END,
	claimed_by = CASE WHEN NOT $9 THEN claimed_by END, claimed_at = CASE WHEN NOT $9 THEN claimed_at END,
	delivered = delivered + $4, failed = failed + $5, parked = parked + $6, failures = $7,
	failure = coalesce($8, failure), failed_at = CASE WHEN $8::text IS NULL THEN failed_at ELSE clock_timestamp() END,
	paused_at = CASE WHEN $10::text IS NULL THEN paused_at ELSE coalesce(paused_at, clock_timestamp()) END,
	paused_by = CASE WHEN $10::text IS NULL THEN paused_by ELSE coalesce(paused_by, 'pawl') END,
	pause_reason = CASE WHEN $10::text IS NULL OR paused_at IS NOT NULL THEN pause_reason ELSE $10 END
WHERE name = $1 AND token = $2
RETURNING revision`

// lease has a row if the batch's first statement returned one.
const lease = `(SELECT revision FROM {pawl}.outbox_sink WHERE name = $2 AND token = $3 LIMIT 1) AS lease`

// unmoved is true unless an operator has moved the tenant's cursor after the revision known to the
// batch. Moves lock the sink first, as the batch does.
const unmoved = `NOT EXISTS (SELECT FROM {pawl}.outbox_cursor c WHERE c.tenant = $1 AND c.sink = $2 AND c.revision > $4)`

// insertDeadSQL inserts events into outbox_dead. Existing rows are those of a retried batch and may
// have been changed by an operator since. Parameters: tenant, sink, token, revision, positions,
// types, ordinals, workflows, instances, statuses, kinds, failures, attempts.
const insertDeadSQL = `
INSERT INTO {pawl}.outbox_dead
	(tenant, sink, position, type, ordinal, workflow, instance, status, kind, failure, attempts, created_at, updated_at)
SELECT $1, $2, u.*, clock_timestamp(), clock_timestamp() FROM ` + lease + `,
	unnest($5::bigint[], $6::text[], $7::int[], $8::text[], $9::text[]::uuid[], $10::text[], $11::text[], $12::text[], $13::int[]) AS u
WHERE ` + unmoved + `
ON CONFLICT (tenant, sink, position, type) DO NOTHING`

// updateDeadSQL updates queued rows. Delivered rows that no operator has changed are deleted.
// Parameters: tenant, sink, token, positions, types, statuses, kinds, failures, attempts, revisions
// of the sink up to which they are valid.
const updateDeadSQL = `
WITH found AS MATERIALIZED (
	SELECT r.row, r.done, u.* FROM ` + lease + `,
		unnest($4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[], $10::bigint[])
			AS u(position, type, status, kind, failure, attempts, revision)
	CROSS JOIN LATERAL (
		SELECT d.ctid AS row, u.status = 'redriven' AND d.changed_by IS NULL AS done FROM {pawl}.outbox_dead d
		WHERE d.tenant = $1 AND d.sink = $2 AND d.position = u.position AND d.type = u.type AND d.status = 'queued'
			AND lease.revision <= u.revision
		LIMIT 1 FOR UPDATE) AS r),
dropped AS (
	DELETE FROM {pawl}.outbox_dead AS d USING found WHERE d.ctid = found.row AND found.done AND d.tenant IS NOT DISTINCT FROM $1)
UPDATE {pawl}.outbox_dead AS d SET status = found.status, kind = found.kind, failure = found.failure, attempts = found.attempts,
	updated_at = clock_timestamp()
FROM found WHERE d.ctid = found.row AND NOT found.done AND d.tenant IS NOT DISTINCT FROM $1`

// cursorSQL stores a cursor. Parameters: tenant, sink, token, revision, position, failure.
const cursorSQL = `
INSERT INTO {pawl}.outbox_cursor (tenant, sink, position, failure, updated_at)
SELECT $1, $2, $5, nullif($6, ''), clock_timestamp() FROM ` + lease + ` WHERE ` + unmoved + `
ON CONFLICT (tenant, sink) DO UPDATE SET position = excluded.position, failure = excluded.failure, updated_at = excluded.updated_at`

// movedSQL returns the cursors that were moved after a revision of the sink. Parameters: sink,
// revision.
const movedSQL = `SELECT tenant, position, revision FROM {pawl}.outbox_cursor WHERE sink = $1 AND revision > $2 AND revision > 0`

// deferredSQL returns the deferred instances of a sink's tenants. If there are too many, it returns
// only a part for the tenants with the most, with the last column true: instances that do not wait
// for an operator, round-robin over the tenants in index order. The next ones are found when these
// are delivered. Parameters: sink, whether waiting rows hold their instance, limit, tenants.
const deferredSQL = `
WITH held AS MATERIALIZED (
	SELECT tenant, instance, bool_and(waits) AS waits FROM (
		SELECT tenant, instance, false AS waits FROM {pawl}.outbox_dead WHERE sink = $1 AND status = 'queued'
		UNION ALL
		SELECT tenant, instance, true FROM {pawl}.outbox_dead WHERE sink = $1 AND status = 'waiting' AND $2) AS d
	WHERE $4::text[] IS NULL OR tenant = ANY ($4::text[])
	GROUP BY tenant, instance),
sizes AS MATERIALIZED (
	SELECT tenant, sum(count(*)) OVER (ORDER BY count(*), tenant) > $3 AS full FROM held GROUP BY tenant)
SELECT h.tenant, h.instance, h.waits, false FROM held h JOIN sizes s ON s.tenant = h.tenant WHERE NOT s.full
UNION ALL
(SELECT h.tenant, h.instance, false, false FROM held h JOIN sizes s ON s.tenant = h.tenant WHERE s.full AND NOT h.waits
	ORDER BY row_number() OVER (PARTITION BY h.tenant ORDER BY h.instance), h.tenant LIMIT $3::bigint)
UNION ALL
SELECT tenant, '00000000-0000-0000-0000-000000000000', false, true FROM sizes WHERE sizes.full`

// rowsSQL reads the first queued rows of each instance; if waiting rows hold their instance, only
// those before them. Instances without rows yield one row without a position. The last column
// reports whether a row waits for an operator. Parameters: tenant, sink, instances, whether waiting
// rows hold their instance, rows per instance.
var rowsSQL = `
SELECT u.instance, coalesce(d.position, 0), coalesce(d.type, ''), coalesce(d.ordinal, 0), coalesce(d.attempts, 0), coalesce(d.kind, ''),
	coalesce(d.failure, ''), o.position IS NOT NULL, o.at, w.position IS NOT NULL, ` + outbox.Details + `
FROM unnest($3::text[]::uuid[]) AS u(instance)
LEFT JOIN LATERAL (
	SELECT x.position, x.ordinal FROM {pawl}.outbox_dead x
	WHERE x.sink = $2 AND x.status = 'waiting' AND x.tenant = $1 AND x.instance = u.instance AND $4
	ORDER BY x.position, x.ordinal LIMIT 1) AS w ON true
LEFT JOIN LATERAL (
	SELECT x.* FROM {pawl}.outbox_dead x
	WHERE x.sink = $2 AND x.status = 'queued' AND x.tenant = $1 AND x.instance = u.instance
		AND (w.position IS NULL OR (x.position, x.ordinal) < (w.position, w.ordinal))
	ORDER BY x.position, x.ordinal LIMIT $5) AS d ON true` + outbox.JoinEvent + `
ORDER BY u.instance, d.position, d.ordinal`
