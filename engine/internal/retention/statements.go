package retention

import "github.com/pawlhq/pawl/internal/kernel/store"

// claimSQL takes the lease if it is free. It returns the holder that has not released it. Parameters: node, length of the lease in
// microseconds.
const claimSQL = `
UPDATE {pawl}.leadership AS d SET token = d.token + 1, claimed_by = $1, claimed_at = clock_timestamp(),
	locked_until = clock_timestamp() + $2::bigint * interval '1 microsecond'
FROM (SELECT x.ctid AS row, x.claimed_by AS taken FROM {pawl}.leadership x
	WHERE x.name = 'retention' AND (x.locked_until IS NULL OR x.locked_until < clock_timestamp()) FOR NO KEY UPDATE SKIP LOCKED) AS found
WHERE d.ctid = found.row
RETURNING d.token, coalesce(found.taken, '')`

// keepSQL prolongs the lease. Parameters: token, length in microseconds.
const keepSQL = `
UPDATE {pawl}.leadership SET locked_until = clock_timestamp() + $2::bigint * interval '1 microsecond' WHERE name = 'retention' AND token = $1`

// releaseSQL gives the lease back. Parameter: token.
const releaseSQL = `
UPDATE {pawl}.leadership SET claimed_by = NULL, claimed_at = NULL, locked_until = NULL WHERE name = 'retention' AND token = $1`

// purgeSQL prolongs the lease and purges, or returns no row. The last column is when the next key is due, as it was before. Parameters:
// token, length of the lease in microseconds, batch, now, how long an answer is replayed in microseconds, the workflows that this node
// decides, where the last one stopped, and since when keys are looked for.
var purgeSQL = `
WITH kept AS (` + keepSQL + ` RETURNING $4::timestamptz AS moment)
SELECT p.expired, p.forgotten, p.abandoned, p.archived, p.passed::text,
	(` + store.NextExpiry("$8::timestamptz") + `)
FROM kept CROSS JOIN LATERAL {pawl}.purge(batch => $3::int, moment => kept.moment, replay => $5::bigint * interval '1 microsecond',
	decided => $6::text[], after => $7::json, since => $8::timestamptz) AS p`

// aheadSQL makes partitions. Parameter: now.
const aheadSQL = `SELECT {pawl}.make_partitions($1)`

// listSQL lists the partitions, the oldest first, those that are detached as well.
// Their names say their times. One that is being dropped has no size.
const listSQL = `
SELECT c.relname, c.relname LIKE 'outbox%', coalesce(i.inhdetachpending, false), i.inhparent IS NULL, pg_has_role(c.relowner, 'USAGE'),
	p.begins AT TIME ZONE 'UTC', (p.begins + CASE WHEN c.relname LIKE 'outbox%' THEN interval '1 week'
		ELSE interval '1 month' END) AT TIME ZONE 'UTC',
	greatest(c.reltuples, 0)::bigint, coalesce(pg_total_relation_size(c.oid), 0)
FROM pg_class AS c LEFT JOIN pg_inherits AS i ON i.inhrelid = c.oid
CROSS JOIN LATERAL (SELECT to_date(substring(c.relname, '_([^_]+)$'),
	CASE WHEN c.relname LIKE 'outbox%' THEN 'IYYY"w"IW' ELSE 'YYYY"m"MM' END)::timestamp AS begins) AS p
WHERE c.relnamespace = (SELECT p.relnamespace FROM pg_class AS p WHERE p.oid = '{pawl}.leadership'::regclass) AND c.relkind = 'r'
	AND c.relname ~ '^(outbox_[0-9]{4,}w[0-5][0-9]|command_history_[0-9]{4,}m(0[1-9]|1[0-2]))$'
ORDER BY c.relname`

// detachSQL detaches a partition for a role that owns nothing. Parameter: its name.
const detachSQL = `SELECT {pawl}.detach_partition($1)`

// dropSQL drops a detached partition. Parameter: its name.
const dropSQL = `SELECT {pawl}.drop_partition($1)`

// backSQL attaches a detached partition again. Parameters: its table, when it begins.
const backSQL = `SELECT {pawl}.make_partition($1, $2)`

// leadersSQL is who has which lease now.
const leadersSQL = `SELECT name, claimed_by FROM {pawl}.leadership WHERE locked_until > clock_timestamp()`

// leaderSQL is who has the lease.
const leaderSQL = `SELECT coalesce(claimed_by, ''), claimed_at, locked_until FROM {pawl}.leadership WHERE name = 'retention'`
