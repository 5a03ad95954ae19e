package keyset

const (
	// readSQL returns a row without a key if there are no keys.
	readSQL = `SELECT now.at, k.id, k.secret, k.created_at FROM (SELECT clock_timestamp() AS at) AS now
		LEFT JOIN {pawl}.ticket_key AS k ON true ORDER BY k.created_at DESC, k.id`

	holdsSQL = `SELECT EXISTS (SELECT FROM {pawl}.ticket_key WHERE id = $1)`

	// boundSQL bounds how long a crashed node can hold the lock.
	boundSQL = `SELECT set_config('idle_in_transaction_session_timeout', '10s', true)`

	// lockSQL waits for concurrent changes, but does not block reads.
	lockSQL = `LOCK TABLE {pawl}.ticket_key IN SHARE ROW EXCLUSIVE MODE`

	// makeSQL creates a key unless one is younger than $1.
	makeSQL = `INSERT INTO {pawl}.ticket_key SELECT WHERE NOT EXISTS (
		SELECT FROM {pawl}.ticket_key AS k WHERE k.created_at > clock_timestamp() - $1::interval)`

	// sweepSQL removes keys of age $1 or older.
	sweepSQL = `DELETE FROM {pawl}.ticket_key AS k WHERE k.created_at <= clock_timestamp() - $1::interval`
)
