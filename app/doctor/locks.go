package doctor

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// lockedSQL finds tables of Pawl with a lock that blocks readers, and its holders. pid is null for a prepared transaction.
const lockedSQL = `SELECT c.relname::text, l.pid, coalesce(a.usename, '')::text, coalesce(a.application_name, '')
FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation JOIN pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND l.granted AND l.mode = 'AccessExclusiveLock'
	AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
ORDER BY c.relname LIMIT 1`

// locked extends a finding about a timeout with the lock that may be its reason, and its holder, if there is one.
func (x *exam) locked(ctx context.Context, f Finding) Finding {
	ctx, cancel := context.WithTimeout(ctx, x.limits.check)
	defer cancel()
	found, err := read(ctx, x, func(row pgx.CollectableRow) (Finding, error) {
		var table, role, program string
		var pid *int
		err := row.Scan(&table, &pid, &role, &program)
		if pid == nil {
			return unknown("see the finding of prepared-transactions, and look again",
				"there was no answer in time: a prepared transaction has locked the table %s, which nobody can read meanwhile", table), err
		}
		return unknown(dof("see what the session %d does, end it where nobody needs it, and look again", *pid),
			"there was no answer in time: the session %d of %s (%s) has locked the table %s, which nobody can read meanwhile",
			*pid, role, orUnnamed(program), table), err
	}, lockedSQL, x.config.Schema)
	if err != nil || len(found) == 0 {
		return f
	}
	return found[0]
}
