package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Holds returns why a partition of the outbox cannot be dropped, or "". in inserts the schema's
// name into a statement.
func Holds(ctx context.Context, pool *pgxpool.Pool, in func(sql string) string, partition string) (why string, err error) {
	sql := in(fmt.Sprintf(heldSQL, "{pawl}."+pgx.Identifier{partition}.Sanitize()))
	err = pool.QueryRow(ctx, sql, pgx.QueryExecModeExec).Scan(&why)
	return why, err
}

// ForgetSettled deletes up to limit settled dead letters that have not changed since before, and
// returns their number. Relays do not use these rows, so their sinks are not locked.
func ForgetSettled(ctx context.Context, pool *pgxpool.Pool, in func(sql string) string, before time.Time, limit int) (int64, error) {
	tag, err := pool.Exec(ctx, in(settledSQL), pgx.QueryExecModeExec, before, limit)
	return tag.RowsAffected(), err
}

// heldSQL returns why a partition of the outbox cannot be dropped, or an empty text: a sink that
// has not passed it, or a dead letter that may still be delivered. It finds the oldest and newest
// event of each tenant, and the dead letters between them, by index, and stops at the first tenant
// that holds the partition. %s is the partition.
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
	(SELECT d.sink FROM {pawl}.outbox_dead AS d ORDER BY d.sink LIMIT 1)
	UNION ALL
	SELECT (SELECT d.sink FROM {pawl}.outbox_dead AS d WHERE d.sink > sinks.sink ORDER BY d.sink LIMIT 1) FROM sinks
		WHERE sinks.sink IS NOT NULL)
SELECT coalesce(
	(SELECT format('sink %%s is at position %%s of tenant %%s', to_json(b.name), b.position, to_json(n.tenant))
		FROM ends AS n CROSS JOIN LATERAL (
			SELECT s.name, coalesce(c.position, 0) AS position
			FROM {pawl}.outbox_sink AS s LEFT JOIN {pawl}.outbox_cursor AS c ON c.tenant = n.tenant AND c.sink = s.name
			WHERE (s.tenants IS NULL OR n.tenant = ANY (s.tenants)) AND n.newest > coalesce(c.position, 0)
			ORDER BY s.name LIMIT 1) AS b LIMIT 1),
	(SELECT format('a dead letter of sink %%s waits, of position %%s of tenant %%s', to_json(d.sink), d.position, to_json(d.tenant))
		FROM ends AS n CROSS JOIN sinks AS s CROSS JOIN LATERAL (
			SELECT x.tenant, x.sink, x.position FROM {pawl}.outbox_dead AS x
			WHERE x.tenant = n.tenant AND x.sink = s.sink AND x.position BETWEEN n.oldest AND n.newest AND x.status IN ('waiting', 'queued')
				AND EXISTS (SELECT FROM %[1]s AS o WHERE o.tenant = x.tenant AND o.position = x.position AND o.type = x.type)
			LIMIT 1) AS d LIMIT 1), '')`

// settledSQL deletes settled dead letters. Parameters: unchanged since, limit.
const settledSQL = `
DELETE FROM {pawl}.outbox_dead WHERE ctid = ANY (ARRAY(SELECT d.ctid FROM {pawl}.outbox_dead AS d
	WHERE d.status IN ('redriven', 'skipped') AND d.updated_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))`
