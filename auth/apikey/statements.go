package apikey

const (
	columns = `id, tenant, name, actor, roles, grants, hash, coalesce(former_hash, ''), former_ends, created_at, created_by, rotated_at,
		coalesce(rotated_by, ''), expires_at, revoked_at, coalesce(revoked_by, ''), last_used_at, revision`

	createSQL = `INSERT INTO {pawl}.api_key (id, tenant, name, actor, roles, grants, hash, created_at, created_by, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, now(), $8, $9)
		ON CONFLICT (tenant, name) WHERE revoked_at IS NULL DO NOTHING RETURNING ` + columns
	namedSQL = `SELECT id FROM {pawl}.api_key WHERE tenant = $1 AND name = $2 AND revoked_at IS NULL`

	getSQL  = `SELECT ` + columns + ` FROM {pawl}.api_key WHERE id = $1 AND ($2 = '' OR tenant = $2)`
	lockSQL = getSQL + ` FOR NO KEY UPDATE`
	listSQL = `SELECT ` + columns + ` FROM {pawl}.api_key WHERE (tenant, created_at, id) > ($2, $3, $4) AND ($1 = '' OR tenant = $1)
		ORDER BY tenant, created_at, id LIMIT $5`

	// orderSQL serializes changes until they commit, so that a reader of a revision has seen
	// all before it. The timeouts bound the delay by a node that crashes during a change.
	orderSQL = `SELECT set_config('idle_in_transaction_session_timeout', '10s', true), set_config('lock_timeout', '30s', true), {pawl}.durable(),
		pg_advisory_xact_lock(hashtextextended('{pawl}.api_key', 0))`
	revision  = `revision = (SELECT max(revision) FROM {pawl}.api_key) + 1`
	rotateSQL = `UPDATE {pawl}.api_key SET hash = $2, former_hash = $3, former_ends = $4, rotated_at = now(), rotated_by = $5, ` + revision +
		` WHERE id = $1 RETURNING ` + columns
	revokeSQL = `UPDATE {pawl}.api_key SET revoked_at = now(), revoked_by = $2, former_hash = NULL, former_ends = NULL, ` + revision +
		` WHERE id = $1 RETURNING ` + columns

	newestSQL = `SELECT coalesce(max(revision), 0) FROM {pawl}.api_key`
	// changedSQL uses its index because of order and limit, even with the statistics of an empty
	// table.
	changedSQL = `SELECT ` + columns + ` FROM {pawl}.api_key WHERE revision >= $1 ORDER BY revision LIMIT $2`
	askedSQL   = `SELECT ` + columns + ` FROM {pawl}.api_key WHERE id = ANY ($1)`

	// usedSQL skips rows that another node is writing, because it writes the same.
	usedSQL = `WITH late AS (SELECT k.id, u.at FROM unnest($1::text[], $2::timestamptz[]) AS u(id, at) JOIN {pawl}.api_key AS k ON k.id = u.id
			WHERE k.last_used_at IS NULL OR k.last_used_at < u.at ORDER BY k.id FOR NO KEY UPDATE OF k SKIP LOCKED)
		UPDATE {pawl}.api_key AS k SET last_used_at = late.at FROM late WHERE k.id = late.id`
)

// statements are the statements of a Table for one schema.
type statements struct {
	create, named, get, lock, list, order, rotate, revoke, newest, changed, asked, used string
}
