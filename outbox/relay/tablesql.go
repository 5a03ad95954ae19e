package relay

import (
	"fmt"

	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/internal/kernel/store"
)

// knownSQL returns whether a sink exists, and the time. Parameter: sink.
const knownSQL = `SELECT EXISTS (SELECT FROM {pawl}.outbox_sink WHERE name = $1), clock_timestamp()`

// lockSQL locks a sink. Parameter: sink.
const lockSQL = `SELECT true FROM {pawl}.outbox_sink WHERE name = $1 FOR NO KEY UPDATE`

// pauseSQL pauses a sink that is not paused. Like resumeSQL it returns whether the sink exists.
// Parameters: sink, operator, reason.
const pauseSQL = `
WITH changed AS (
	UPDATE {pawl}.outbox_sink SET paused_at = clock_timestamp(), paused_by = $2, pause_reason = nullif($3, ''), revision = revision + 1
	FROM {pawl}.durable()
	WHERE name = $1 AND paused_at IS NULL)
SELECT EXISTS (SELECT FROM {pawl}.outbox_sink WHERE name = $1)`

// resumeSQL ends a pause. Parameter: sink.
const resumeSQL = `
WITH changed AS (
	UPDATE {pawl}.outbox_sink SET paused_at = NULL, paused_by = NULL, pause_reason = NULL, revision = revision + 1
	FROM {pawl}.durable()
	WHERE name = $1 AND paused_at IS NOT NULL)
SELECT EXISTS (SELECT FROM {pawl}.outbox_sink WHERE name = $1)`

// holderSQL locks a sink and returns its node. Parameter: sink.
const holderSQL = `
SELECT CASE WHEN locked_until > clock_timestamp() THEN claimed_by ELSE '' END FROM {pawl}.outbox_sink WHERE name = $1 FOR UPDATE`

// nodesSQL returns the node of each sink that receives a tenant's events. Parameter: tenant or "".
const nodesSQL = `
SELECT name, claimed_by FROM {pawl}.outbox_sink
WHERE locked_until > clock_timestamp() AND ($1 = '' OR tenants IS NULL OR $1 = ANY (tenants)) ORDER BY name`

// Deletion of a sink. Parameter: sink.
const (
	dropDeadSQL    = `DELETE FROM {pawl}.outbox_dead WHERE sink = $1`
	dropCursorsSQL = `DELETE FROM {pawl}.outbox_cursor WHERE sink = $1`
	dropSinkSQL    = `DELETE FROM {pawl}.outbox_sink USING {pawl}.durable() WHERE name = $1`
)

// reviseSQL locks a sink and makes its relay reload deferred events and moved cursors. It makes the
// transaction durable. Parameter: sink.
const reviseSQL = `UPDATE {pawl}.outbox_sink SET revision = revision + 1 FROM {pawl}.durable() WHERE name = $1`

// positionSQL returns a cursor and the last position of its log. Parameters: sink, tenant.
var positionSQL = `
SELECT coalesce((SELECT position FROM {pawl}.outbox_cursor WHERE tenant = $2 AND sink = $1), 0),
	` + outbox.HeadOf("$2")

// moveSQL moves a cursor after reviseSQL. Parameters: tenant, sink, position, previous position,
// operator, reason.
const moveSQL = `
INSERT INTO {pawl}.outbox_cursor (tenant, sink, position, revision, updated_at, moved_from, moved_at, moved_by, moved_reason)
SELECT $1, $2, $3, s.revision, clock_timestamp(), $4, clock_timestamp(), $5, nullif($6, '') FROM {pawl}.outbox_sink s WHERE s.name = $2
ON CONFLICT (tenant, sink) DO UPDATE SET position = excluded.position, revision = excluded.revision, failure = NULL,
	updated_at = excluded.updated_at, moved_from = excluded.moved_from, moved_at = excluded.moved_at,
	moved_by = excluded.moved_by, moved_reason = excluded.moved_reason`

// dropPastSQL deletes the rows after a cursor that moved back. Parameters: tenant, sink, position.
const dropPastSQL = `DELETE FROM {pawl}.outbox_dead WHERE tenant = $1 AND sink = $2 AND position > $3`

// filter selects dead letters d. Parameters: sink, status; optional (NULL or 0): tenant, workflow,
// type, instance, position.
const filter = `d.sink = $1 AND d.status = $2 AND ($3::text IS NULL OR d.tenant = $3) AND ($4::text IS NULL OR d.workflow = $4)
	AND ($5::text IS NULL OR d.type = $5) AND ($6::uuid IS NULL OR d.instance = $6) AND ($7::bigint = 0 OR d.position = $7)`

// statusSQL changes the status of some dead letters of a tenant. Parameters: those of filter,
// limit, new status, operator, reason, unchanged since.
const statusSQL = `
UPDATE {pawl}.outbox_dead AS d SET status = $9, changed_by = $10, reason = nullif($11, ''), updated_at = clock_timestamp(),
	attempts = CASE WHEN $9 = 'queued' THEN 0 ELSE d.attempts END
FROM (SELECT d.ctid AS row FROM {pawl}.outbox_dead d WHERE ` + filter + `
		AND d.updated_at <= $12
	ORDER BY d.instance, d.position, d.ordinal LIMIT $8 FOR UPDATE) AS found
WHERE d.ctid = found.row AND d.tenant = $3::text`

// tenantsSQL returns the tenants of a sink's dead letters. Parameters: sink, status.
const tenantsSQL = `
WITH RECURSIVE each AS (
	(SELECT tenant FROM {pawl}.outbox_dead WHERE sink = $1 AND status = $2 ORDER BY tenant LIMIT 1)
	UNION ALL
	SELECT (SELECT d.tenant FROM {pawl}.outbox_dead d WHERE d.sink = $1 AND d.status = $2 AND d.tenant > each.tenant ORDER BY d.tenant LIMIT 1)
	FROM each WHERE each.tenant IS NOT NULL)
SELECT tenant FROM each WHERE tenant IS NOT NULL`

// deadSQL returns a page of dead letters. Parameters: those of filter; tenant, instance, position
// and ordinal of the last row of the previous page; limit.
var deadSQL = `
SELECT d.sink, d.tenant, d.position, d.type, d.ordinal, d.workflow, d.instance, coalesce(i.business_key, ''), d.status, d.kind, d.failure,
	d.attempts, d.created_at, d.updated_at, coalesce(d.changed_by, ''), coalesce(d.reason, '')
FROM (SELECT * FROM {pawl}.outbox_dead d
	WHERE ` + filter + ` AND (d.tenant, d.instance, d.position, d.ordinal) > ($8, $9, $10, $11)
	ORDER BY d.tenant, d.instance, d.position, d.ordinal LIMIT $12) AS d` + store.BusinessKey("d.tenant", "d.instance") + `
ORDER BY d.tenant, d.instance, d.position, d.ordinal`

// oldest is the time of the first event after cursor c in log l.
var oldest = `LEFT JOIN LATERAL (` +
	outbox.FirstAfter("at", "l.tenant", "coalesce(c.position, 0)", "l.head > coalesce(c.position, 0)") + `) AS first ON true`

// failing is why cursor c does not advance in log l. A relay moves a fully delivered cursor past
// the last position only if the log has lost events.
const failing = `CASE WHEN c.position > l.head
	THEN 'the cursor is past the end of the log, which has lost some of it: move it back to where it is right' ELSE c.failure END`

// infosSQL returns the state of the sinks. It reads all last positions and cursors once, without a
// sort. Logs without a cursor are only searched if their count says that there are some. The age of
// the backlog is read from the outbox for at most oldestOf tenants per sink: those without a
// cursor, then those with the least recently updated cursors. Parameter: tenant or "".
var infosSQL = fmt.Sprintf(`
WITH every AS MATERIALIZED (
	SELECT count(*) AS logs, coalesce(sum(l.head), 0) AS heads FROM `+outbox.Logs+` l WHERE ($1 = '' OR l.tenant = $1) AND l.head > 0),
known AS MATERIALIZED (
	SELECT c.sink, count(*) FILTER (WHERE l.head > 0) AS logs, sum(least(c.position, l.head)) AS got, count(%[2]s) AS stuck,
		array_agg(l.tenant) FILTER (WHERE %[1]s) AS tenants, array_agg(c.position) FILTER (WHERE %[1]s) AS positions,
		array_agg(c.updated_at) FILTER (WHERE %[1]s) AS since
	FROM {pawl}.outbox_cursor c JOIN `+outbox.Logs+` l ON l.tenant = c.tenant
	JOIN {pawl}.outbox_sink s ON s.name = c.sink AND (s.tenants IS NULL OR l.tenant = ANY (s.tenants))
	WHERE $1 = '' OR c.tenant = $1
	GROUP BY c.sink)
SELECT s.name, s.tenants, coalesce(s.claimed_by, ''), s.claimed_at, s.locked_until, s.paused_at, coalesce(s.paused_by, ''),
	coalesce(s.pause_reason, ''), s.failures, coalesce(s.failure, ''), s.failed_at, s.delivered, s.failed, s.parked,
	new.logs + coalesce(cardinality(k.tenants), 0), (t.heads - coalesce(k.got, 0))::bigint, (
		SELECT min(first.at) FROM (
			(SELECT l.tenant, 0::bigint AS position, '-infinity'::timestamptz AS since FROM `+outbox.Logs+` l
				LEFT JOIN LATERAL (SELECT true AS had FROM {pawl}.outbox_cursor c WHERE c.tenant = l.tenant AND c.sink = s.name LIMIT 1) AS c ON true
				WHERE new.logs > 0 AND l.head > 0 AND c.had IS NULL AND (s.tenants IS NULL OR l.tenant = ANY (s.tenants))
					AND ($1 = '' OR l.tenant = $1)
				LIMIT %[4]d)
			UNION ALL
			(SELECT * FROM unnest(k.tenants, k.positions, k.since) AS b(tenant, position, since) ORDER BY since LIMIT %[4]d)
			ORDER BY since LIMIT %[4]d) AS b CROSS JOIN LATERAL (%[3]s) AS first),
	coalesce(k.stuck, 0),
	(SELECT count(*) FROM {pawl}.outbox_dead d WHERE d.sink = s.name AND d.status = 'waiting' AND ($1 = '' OR d.tenant = $1)),
	(SELECT count(*) FROM {pawl}.outbox_dead d WHERE d.sink = s.name AND d.status = 'queued' AND ($1 = '' OR d.tenant = $1))
FROM {pawl}.outbox_sink s LEFT JOIN known k ON k.sink = s.name CROSS JOIN LATERAL (
	SELECT logs, heads FROM every WHERE s.tenants IS NULL
	UNION ALL
	SELECT count(*), coalesce(sum(l.head), 0) FROM `+outbox.Logs+` l
	WHERE l.tenant = ANY (s.tenants) AND ($1 = '' OR l.tenant = $1) AND l.head > 0 HAVING s.tenants IS NOT NULL) AS t
CROSS JOIN LATERAL (SELECT t.logs - coalesce(k.logs, 0) AS logs) AS new
WHERE $1 = '' OR s.tenants IS NULL OR $1 = ANY (s.tenants)
ORDER BY s.name`, behind, failing, outbox.FirstAfter("at", "b.tenant", "b.position", "true"), oldestOf)

const oldestOf = 32

// cursorsSQL returns a page of a sink's cursors. Parameters: sink, tenant or "", last tenant of the
// previous page, limit.
var cursorsSQL = `
SELECT s.name, l.tenant, coalesce(c.position, 0), l.head, greatest(l.head - coalesce(c.position, 0), 0), first.at,
	coalesce(` + failing + `, ''), c.updated_at, c.moved_from, c.moved_at, coalesce(c.moved_by, ''), coalesce(c.moved_reason, '')
FROM {pawl}.outbox_sink s
JOIN ` + outbox.Logs + ` l ON l.tenant > $3 AND ($2 = '' OR l.tenant = $2) AND (s.tenants IS NULL OR l.tenant = ANY (s.tenants))
LEFT JOIN {pawl}.outbox_cursor c ON c.tenant = l.tenant AND c.sink = s.name ` + oldest + `
WHERE s.name = $1
ORDER BY l.tenant LIMIT $4`
