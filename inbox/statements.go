package inbox

import "github.com/pawlhq/pawl/internal/kernel/store"

const (
	columns = `tenant, consumer, message, hash, type, size, `
	rest    = `, status, code, failure, deliveries, created_at, updated_at, coalesce(changed_by, ''), coalesce(reason, ''),
	coalesce(workflow, ''), coalesce(business_key, ''), coalesce(instance, '00000000-0000-0000-0000-000000000000')`
	byKey = ` WHERE d.tenant = $1 AND d.consumer = $2 AND d.message = $3 AND d.hash = $4`

	selectPage = `SELECT ` + columns + `NULL::bytea` + rest + ` FROM {pawl}.inbox_dead WHERE tenant = $1 AND status = $2
	AND (consumer, created_at, message, hash) > ($3, $4, $5, $6)
	AND ($8 = '' OR workflow = $8) AND ($9 = '' OR business_key = $9)`
	selectEnd = ` ORDER BY consumer, created_at, message, hash LIMIT $7`
)

// Statements that lock both a row of the list and a command lock the row of the list first. Results
// that are reported to a caller or a sender are durable, independent of the default.
const (
	putSQL = `INSERT INTO {pawl}.inbox_dead AS d (tenant, consumer, message, hash, type, size, body, status, code, failure, deliveries,
			created_at, updated_at, workflow, business_key, instance)
		SELECT $1, $2, $3, $4, $5, $11, $6, 'waiting', $7, $8, $9, $10, $10,
			nullif($12, ''), nullif($13, ''), nullif($14, '00000000-0000-0000-0000-000000000000'::uuid) FROM {pawl}.durable()
		ON CONFLICT (tenant, consumer, message, hash) DO UPDATE SET type = excluded.type, code = excluded.code, failure = excluded.failure,
			workflow = excluded.workflow, business_key = excluded.business_key, instance = excluded.instance,
			status = CASE d.status WHEN 'discarded' THEN 'discarded' ELSE 'waiting' END,
			deliveries = greatest(d.deliveries + 1, excluded.deliveries), updated_at = excluded.updated_at
		RETURNING xmax = 0`
	doneSQL = `DELETE FROM {pawl}.inbox_dead AS d` + byKey + ` AND d.status = 'waiting'`
	getSQL  = `SELECT ` + columns + `body` + rest + ` FROM {pawl}.inbox_dead AS d` + byKey

	listSQL   = selectPage + selectEnd
	listOfSQL = selectPage + ` AND consumer = $10` + selectEnd

	retriedSQL = `UPDATE {pawl}.inbox_dead AS d SET status = 'retried', changed_by = $5, reason = nullif($6, ''), updated_at = $7
		FROM {pawl}.durable()` + byKey

	forgetSQL = `DELETE FROM {pawl}.inbox_dead WHERE ctid = ANY (ARRAY(SELECT d.ctid FROM {pawl}.inbox_dead AS d
		WHERE d.status <> 'waiting' AND d.updated_at < $1 ORDER BY d.updated_at LIMIT $2 FOR UPDATE SKIP LOCKED))`
)

// Statements that also write the message's command.
var (
	// Another message with this id that an operator discarded does not block the key.
	reopenSQL = `WITH waiting AS (UPDATE {pawl}.inbox_dead AS d SET status = 'waiting', updated_at = $7` + byKey + ` RETURNING 1)` +
		store.WithdrawRefusal(store.Refusal{Tenant: "$1", Scope: "$5", Key: "$3"}, `CASE
			WHEN c.fingerprint = $4 THEN c.status = 'failed_final' OR c.status = 'expired' AND $6
			ELSE c.status IN ('failed_final', 'expired') AND EXISTS (SELECT FROM {pawl}.inbox_dead AS o
				WHERE o.tenant = $1 AND o.consumer = $2 AND o.message = $3 AND o.hash = c.fingerprint AND o.status = 'discarded')
			END AND (SELECT count(*) FROM waiting) > 0`)

	discardSQL = `WITH discarded AS (UPDATE {pawl}.inbox_dead AS d SET status = 'discarded', changed_by = $5, reason = nullif($6, ''),
		updated_at = $7 FROM {pawl}.durable()` +
		byKey + ` AND d.status = 'waiting' RETURNING 1)` + store.InsertRefusal(
		store.Refusal{Tenant: "$1", Scope: "$9", Key: "$3", Fingerprint: "$4",
			Actor: "$5", Code: "$10", Body: "$11", At: "$7", Expires: "$8"},
		"discarded",
	)

	// A message that was done elsewhere is not discarded. This is a separate statement so that it
	// sees the changes for which the previous one waited.
	doneElsewhereSQL = `UPDATE {pawl}.inbox_dead AS d SET status = 'retried' FROM {pawl}.durable()` +
		byKey + ` AND d.status = 'discarded' AND ` +
		store.Succeeded(store.Refusal{Tenant: "$1", Scope: "$5", Key: "$3", Fingerprint: "$4"})
)

// waitingSQL counts messages waiting for an operator, per tenant, with the index of the list.
// Parameters: tenant or "", limit.
const waitingSQL = `
WITH RECURSIVE each AS (
	(SELECT tenant FROM {pawl}.inbox_dead WHERE tenant >= $1 ORDER BY tenant LIMIT 1)
	UNION ALL
	SELECT (SELECT d.tenant FROM {pawl}.inbox_dead d WHERE d.tenant > each.tenant ORDER BY d.tenant LIMIT 1)
	FROM each WHERE each.tenant IS NOT NULL AND $1 = '')
SELECT count(*), min(w.created_at)
FROM (SELECT d.created_at FROM each CROSS JOIN LATERAL (
		SELECT x.created_at FROM {pawl}.inbox_dead x WHERE x.tenant = each.tenant AND x.status = 'waiting' LIMIT $2) AS d
	WHERE $1 = '' OR each.tenant = $1 LIMIT $2) AS w`
