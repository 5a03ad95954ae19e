package ring

const (
	// readSQL has a row without a key where there are none.
	readSQL = `SELECT now.at, k.id, k.secret, k.created_at FROM (SELECT clock_timestamp() AS at) AS now
		LEFT JOIN {pawl}.ticket_key AS k ON true ORDER BY k.created_at DESC, k.id`

	holdsSQL = `SELECT EXISTS (SELECT FROM {pawl}.ticket_key WHERE id = $1)`

	// boundSQL lets a node that is lost in the middle hold the lock for a moment only.
	boundSQL = `SELECT set_config('idle_in_transaction_session_timeout', '10s', true)`

	// lockSQL waits for others who add or remove a key, not for who reads.
	lockSQL = `LOCK TABLE {pawl}.ticket_key IN SHARE ROW EXCLUSIVE MODE`

	// makeSQL makes a key, unless there is one that is younger than $1.
	makeSQL = `INSERT INTO {pawl}.ticket_key SELECT WHERE NOT EXISTS (
		SELECT FROM {pawl}.ticket_key AS k WHERE k.created_at > clock_timestamp() - $1::interval)`

	// sweepSQL removes keys that are not younger than $1.
	sweepSQL = `DELETE FROM {pawl}.ticket_key AS k WHERE k.created_at <= clock_timestamp() - $1::interval`
)
