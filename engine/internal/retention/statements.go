package retention

// statements are the statements of a runner, for one schema.
type statements struct {
	in                                                                                                    func(sql string) string
	claim, keep, release, purge, giveUp, ahead, list, kept, drop, back, letters, messages, leader, oldest string
}

func newStatements(in func(sql string) string) statements {
	return statements{in: in, claim: in(claimSQL), keep: in(keepSQL), release: in(releaseSQL), purge: in(purgeSQL), giveUp: in(giveUpSQL), ahead: in(aheadSQL), list: in(listSQL),
		kept: in(keptSQL), drop: in(dropSQL), back: in(backSQL), letters: in(lettersSQL), messages: in(messagesSQL), leader: in(leaderSQL), oldest: in(oldestSQL)}
}

// claimSQL takes the lease, if nobody has it. It returns who has not given it
// back. Parameters: node, length of the lease in microseconds.
const claimSQL = `
UPDATE pawl.leadership AS d SET token = d.token + 1, claimed_by = $1, claimed_at = clock_timestamp(),
	locked_until = clock_timestamp() + $2::bigint * interval '1 microsecond'
FROM (SELECT x.ctid AS row, x.claimed_by AS taken FROM pawl.leadership x
	WHERE x.name = 'retention' AND (x.locked_until IS NULL OR x.locked_until < clock_timestamp()) FOR NO KEY UPDATE SKIP LOCKED) AS found
WHERE d.ctid = found.row
RETURNING d.token, coalesce(found.taken, '')`

// keepSQL prolongs the lease. Parameters: token, length in microseconds.
const keepSQL = `
UPDATE pawl.leadership SET locked_until = clock_timestamp() + $2::bigint * interval '1 microsecond' WHERE name = 'retention' AND token = $1`

// releaseSQL gives the lease back. Parameter: token.
const releaseSQL = `
UPDATE pawl.leadership SET claimed_by = NULL, claimed_at = NULL, locked_until = NULL WHERE name = 'retention' AND token = $1`

// purgeSQL prolongs the lease and purges, or returns no row. The last column is
// when the next key is due, as it was before. Parameters: token, length of the
// lease in microseconds, batch, now, how long an answer is replayed in
// microseconds, the workflows that this node decides, where the last one stopped,
// and since when keys are looked for.
const purgeSQL = `
WITH kept AS (` + keepSQL + ` RETURNING $4::timestamptz AS moment)
SELECT p.expired, p.forgotten, p.abandoned, p.archived, p.passed::text,
	(SELECT expires_at FROM pawl.command WHERE expires_at >= $8::timestamptz ORDER BY expires_at LIMIT 1)
FROM kept CROSS JOIN LATERAL pawl.purge(batch => $3::int, moment => kept.moment, replay => $5::bigint * interval '1 microsecond', decided => $6::text[], after => $7::json, since => $8::timestamptz) AS p`

// oldestSQL is when the key is due that is due first.
const oldestSQL = `SELECT expires_at FROM pawl.command WHERE expires_at IS NOT NULL ORDER BY expires_at LIMIT 1`

// aheadSQL makes partitions. Parameter: now.
const aheadSQL = `SELECT pawl.make_partitions($1)`

// listSQL lists the partitions, the oldest first, those that are detached as well.
// Their names say their times. One that is being dropped has no size.
const listSQL = `
SELECT c.relname, c.relname LIKE 'outbox%', coalesce(i.inhdetachpending, false), i.inhparent IS NULL,
	p.begins AT TIME ZONE 'UTC', (p.begins + CASE WHEN c.relname LIKE 'outbox%' THEN interval '1 week' ELSE interval '1 month' END) AT TIME ZONE 'UTC',
	greatest(c.reltuples, 0)::bigint, coalesce(pg_total_relation_size(c.oid), 0)
FROM pg_class AS c LEFT JOIN pg_inherits AS i ON i.inhrelid = c.oid
CROSS JOIN LATERAL (SELECT to_date(substring(c.relname, '_([^_]+)$'),
	CASE WHEN c.relname LIKE 'outbox%' THEN 'IYYY"w"IW' ELSE 'YYYY"m"MM' END)::timestamp AS begins) AS p
WHERE c.relnamespace = (SELECT p.relnamespace FROM pg_class AS p WHERE p.oid = 'pawl.outbox'::regclass) AND c.relkind = 'r'
	AND c.relname ~ '^(outbox_[0-9]{4,}w[0-5][0-9]|command_history_[0-9]{4,}m(0[1-9]|1[0-2]))$'
ORDER BY c.relname`

// heldSQL says why a partition of the outbox cannot go; ” if nothing holds it: a
// sink that has not passed all that it has to, or a dead letter that may still be
// delivered. The oldest and the newest event of each tenant are found by index, and
// so are dead letters between them: there may be many of other weeks. Nothing is
// read beyond the first tenant that is found to hold it. %s is the partition.
const heldSQL = `
WITH RECURSIVE each AS (
	(SELECT o.tenant, o.position FROM %[1]s AS o ORDER BY o.tenant, o.position LIMIT 1)
	UNION ALL
	SELECT n.tenant, n.position FROM each CROSS JOIN LATERAL (
		SELECT o.tenant, o.position FROM %[1]s AS o WHERE o.tenant > each.tenant ORDER BY o.tenant, o.position LIMIT 1) AS n),
ends AS (
	SELECT each.tenant, each.position AS oldest,
		(SELECT o.position FROM %[1]s AS o WHERE o.tenant = each.tenant ORDER BY o.position DESC LIMIT 1) AS newest
	FROM each),
sinks AS (
	(SELECT d.sink FROM pawl.outbox_dead AS d ORDER BY d.sink LIMIT 1)
	UNION ALL
	SELECT (SELECT d.sink FROM pawl.outbox_dead AS d WHERE d.sink > sinks.sink ORDER BY d.sink LIMIT 1) FROM sinks WHERE sinks.sink IS NOT NULL)
SELECT coalesce(
	(SELECT format('sink %%s is at position %%s of tenant %%s', to_json(b.name), b.position, to_json(n.tenant))
		FROM ends AS n CROSS JOIN LATERAL (
			SELECT s.name, coalesce(c.position, 0) AS position
			FROM pawl.outbox_sink AS s LEFT JOIN pawl.outbox_cursor AS c ON c.tenant = n.tenant AND c.sink = s.name
			WHERE (s.tenants IS NULL OR n.tenant = ANY (s.tenants)) AND n.newest > coalesce(c.position, 0)
			ORDER BY s.name LIMIT 1) AS b LIMIT 1),
	(SELECT format('a dead letter of sink %%s waits, of position %%s of tenant %%s', to_json(d.sink), d.position, to_json(d.tenant))
		FROM ends AS n CROSS JOIN sinks AS s CROSS JOIN LATERAL (
			SELECT x.tenant, x.sink, x.position FROM pawl.outbox_dead AS x
			WHERE x.tenant = n.tenant AND x.sink = s.sink AND x.position BETWEEN n.oldest AND n.newest AND x.status IN ('waiting', 'queued')
				AND EXISTS (SELECT FROM %[1]s AS o WHERE o.tenant = x.tenant AND o.position = x.position AND o.type = x.type)
			LIMIT 1) AS d LIMIT 1), '')`

// keptSQL is before when a month of the history must end to be dropped; no row as
// long as some workflow wants to keep it for ever, or none says how long.
// Parameter: now.
const keptSQL = `
SELECT $1::timestamptz - max(history_kept) FROM pawl.horizon WHERE history HAVING bool_and(history_kept IS NOT NULL)`

// dropSQL drops a detached partition. Parameter: its name.
const dropSQL = `SELECT pawl.drop_partition($1)`

// backSQL attaches a detached partition again. Parameters: its table, when it begins.
const backSQL = `SELECT pawl.make_partition($1, $2)`

// lettersSQL deletes dead letters that are settled. Parameters: before when they
// have not changed, how many.
const lettersSQL = `
DELETE FROM pawl.outbox_dead WHERE ctid = ANY (ARRAY(SELECT d.ctid FROM pawl.outbox_dead AS d
	WHERE d.status IN ('redriven', 'skipped') AND d.updated_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))`

// messagesSQL deletes dead messages that are settled. Parameters: as before.
const messagesSQL = `
DELETE FROM pawl.inbox_dead WHERE ctid = ANY (ARRAY(SELECT d.ctid FROM pawl.inbox_dead AS d
	WHERE d.status <> 'waiting' AND d.updated_at < $1 ORDER BY d.updated_at LIMIT $2 FOR UPDATE SKIP LOCKED))`

// leaderSQL is who has the lease.
const leaderSQL = `SELECT coalesce(claimed_by, ''), claimed_at, locked_until FROM pawl.leadership WHERE name = 'retention'`
