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

	// orderSQL lets changes come one after the other until they commit, so that whoever has seen a revision has
	// seen all before it. A node that is lost in the middle of one holds up the others, such as a revocation, for a moment only.
	orderSQL = `SELECT set_config('idle_in_transaction_session_timeout', '10s', true), set_config('lock_timeout', '30s', true), {pawl}.durable(),
		pg_advisory_xact_lock(hashtextextended('{pawl}.api_key', 0))`
	revision  = `revision = (SELECT max(revision) FROM {pawl}.api_key) + 1`
	rotateSQL = `UPDATE {pawl}.api_key SET hash = $2, former_hash = $3, former_ends = $4, rotated_at = now(), rotated_by = $5, ` + revision +
		` WHERE id = $1 RETURNING ` + columns
	revokeSQL = `UPDATE {pawl}.api_key SET revoked_at = now(), revoked_by = $2, former_hash = NULL, former_ends = NULL, ` + revision +
		` WHERE id = $1 RETURNING ` + columns

	newestSQL = `SELECT coalesce(max(revision), 0) FROM {pawl}.api_key`
	// changedSQL keeps to its index by the order and the limit, also where the statistics are those of an empty table.
	changedSQL = `SELECT ` + columns + ` FROM {pawl}.api_key WHERE revision >= $1 ORDER BY revision LIMIT $2`
	askedSQL   = `SELECT ` + columns + ` FROM {pawl}.api_key WHERE id = ANY ($1)`

	// usedSQL passes over what another node is writing: it writes the same.
	usedSQL = `WITH late AS (SELECT k.id, u.at FROM unnest($1::text[], $2::timestamptz[]) AS u(id, at) JOIN {pawl}.api_key AS k ON k.id = u.id
			WHERE k.last_used_at IS NULL OR k.last_used_at < u.at ORDER BY k.id FOR NO KEY UPDATE OF k SKIP LOCKED)
		UPDATE {pawl}.api_key AS k SET last_used_at = late.at FROM late WHERE k.id = late.id`
)

// statements are the statements of a Table, for one schema.
type statements struct {
	create, named, get, lock, list, order, rotate, revoke, newest, changed, asked, used string
}

func newStatements(in func(sql string) string) statements {
	return statements{create: in(createSQL), named: in(namedSQL), get: in(getSQL), lock: in(lockSQL), list: in(listSQL), order: in(orderSQL),
		rotate: in(rotateSQL), revoke: in(revokeSQL), newest: in(newestSQL), changed: in(changedSQL), asked: in(askedSQL), used: in(usedSQL)}
}
