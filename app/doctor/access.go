package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/schema"
)

// facts are properties of the server and the role that several checks use.
type facts struct {
	number   int    // such as 150018
	version  string // such as 15.18
	role     string
	database string
	standby  bool
	sees     bool // may see the sessions of other roles
}

// connection is the name of the first check. If it fails, the others are skipped.
const connection = "connection"

const factsSQL = `SELECT current_setting('server_version_num')::int, split_part(current_setting('server_version'), ' ', 1),
	current_user::text,
	current_database()::text, pg_is_in_recovery(), pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')`

func lookAtConnection(ctx context.Context, x *exam) (string, []Finding, error) {
	var f facts
	err := x.pool.QueryRow(ctx, factsSQL).Scan(&f.number, &f.version, &f.role, &f.database, &f.standby, &f.sees)
	if err != nil {
		return "", nil, err
	}
	x.facts = f
	return fmt.Sprintf("database %s, as %s", f.database, f.role), nil, nil
}

// advice maps SQLSTATEs of refused connections to remedies.
var advice = map[string]todo{
	"28P01": "correct the role or the password in DATABASE_URL or --database",
	"28000": "allow this role in pg_hba.conf from this machine, or use another role",
	"3D000": "use the name of an existing database, or create it",
	"42501": "GRANT CONNECT on the database to the role",
	"53300": "raise max_connections or the role's limit, or reduce the connections of programs, such as with a pooler",
	"57P03": "wait until the server has started, and look at its log",
}

// schemaOf quotes the schema of the tables.
func (x *exam) schemaOf() string { return pgx.Identifier{x.config.Schema}.Sanitize() }

// maxRights bounds how many missing rights a report lists.
const maxRights = 10

// lookAtRights compares the rights of the role with those of a node. A role that sees the sessions of others and cannot write is a
// monitoring role.
func lookAtRights(ctx context.Context, x *exam) (string, []Finding, error) {
	missing, err := schema.Missing(ctx, x.pool, x.config.Schema)
	if err != nil {
		return "", nil, err
	}
	if len(missing) == 0 {
		return fmt.Sprintf("the role %s has the rights of a node", x.facts.role), nil, nil
	}
	writes, err := one[struct{ Any bool }](ctx, x, writesSQL, x.config.Schema)
	if err != nil {
		return "", nil, err
	}
	if x.facts.sees && !writes.Any {
		return fmt.Sprintf("the role %s is read-only: no node can use it", x.facts.role), nil, nil
	}
	do := dof(`as the owner of the tables, run "migrate grants %s"`, x.facts.role)
	var found []Finding
	for i, r := range missing {
		if i == maxRights {
			found = append(found, problem("others", do, "the role %s lacks %s", x.facts.role, several(len(missing)-i, "more right")))
			break
		}
		found = append(found, problem(r.String(), do, "the role %s lacks %s, which a node needs", x.facts.role, r))
	}
	return "", found, nil
}

// writesSQL reports whether the role may write any of the tables. Parameter: the schema.
const writesSQL = `SELECT EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
	WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE'))`

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
			return unknown("see the check prepared-transactions, and run it again",
				"timeout: a prepared transaction has locked the table %s against readers", table), err
		}
		return unknown(dof("see what the session %d does, end it if it is not needed, and run it again", *pid),
			"timeout: the session %d of %s (%s) has locked the table %s against readers",
			*pid, role, orUnnamed(program), table), err
	}, lockedSQL, x.config.Schema)
	if err != nil || len(found) == 0 {
		return f
	}
	return found[0]
}
