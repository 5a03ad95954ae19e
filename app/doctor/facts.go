package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/app/dialerror"
)

// facts are what other checks need to know of the server and of the role that asks.
type facts struct {
	number   int    // such as 150018
	version  string // such as 15.18
	role     string
	database string
	standby  bool
	sees     bool // the sessions of other roles
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

// advice is what to do about a connection that is refused, by SQLSTATE.
var advice = map[string]todo{
	"28P01": "give the role and the password that the server knows, in DATABASE_URL or --database",
	"28000": "have pg_hba.conf let this role in from this machine, or give another role",
	"3D000": "give the name of a database that is there, or create it",
	"42501": "GRANT CONNECT on the database to the role",
	"53300": "raise max_connections or the role's limit, or let programs keep fewer connections, such as with a pooler",
	"57P03": "wait until the server has started, and look at its log",
}

// noConnection is the finding where nobody answers.
func noConnection(err error) Finding {
	do := todo("see whether the server runs, and whether host and port of the connection string lead to it")
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && advice[e.Code] != "" {
		do = advice[e.Code]
	}
	return problem("", do, "the database does not answer: %s", dialerror.OneLine(err))
}

// schemaOf quotes the schema of the tables.
func (x *exam) schemaOf() string { return pgx.Identifier{x.config.Schema}.Sanitize() }
