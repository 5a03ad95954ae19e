package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// setting is the value of a setting for the nodes, and its source.
type setting struct {
	Name  string
	Value string // with its unit
	Place string // such as "role shop"
	Undo  string // the statement that takes it back
}

// rule reports values of a setting as findings.
type rule struct {
	name     string
	severity Severity
	hurts    func(value string) bool
	why      string
}

// judge applies rules to the settings.
func (x *exam) judge(ctx context.Context, rules ...rule) (found []Finding, err error) {
	all, err := x.settings(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		for _, s := range all {
			if s.Name == r.name && r.hurts(s.Value) {
				found = append(found, Finding{About: s.Name, Severity: r.severity, Do: s.Undo,
					Found: fmt.Sprintf("%s is %s for %s: %s", s.Name, s.Value, s.Place, r.why)})
			}
		}
	}
	return found, nil
}

// value returns the server-wide value of a setting, "" if it is not visible.
func (x *exam) value(ctx context.Context, name string) (string, error) {
	all, err := x.settings(ctx)
	for _, s := range all {
		if s.Name == name && s.Place == everybody {
			return s.Value, err
		}
	}
	return "", err
}

// everybody is the place of a server-wide setting.
const everybody = "the server"

// settings returns the watched settings of the server, of the connection string, and of the roles that write the tables. They are read
// once.
func (x *exam) settings(ctx context.Context) ([]setting, error) {
	if x.said != nil {
		return x.said, nil
	}
	rows, err := x.pool.Query(ctx, serversSQL, watched) // not where a transaction has bounded itself
	if err != nil {
		return nil, err
	}
	own, err := pgx.CollectRows(rows, readServers)
	if err != nil {
		return nil, err
	}
	roles, err := read(ctx, x, readRoles, rolesSQL, x.in("{pawl}.command"), watched)
	if err != nil {
		return nil, err
	}
	x.said = append(own, roles...)
	return x.said, nil
}

// watched are the settings that are read.
var watched = []string{
	"autovacuum", "default_transaction_read_only", "fsync", "full_page_writes", "idle_in_transaction_session_timeout",
	"idle_session_timeout", "lock_timeout", "max_connections", "reserved_connections", "statement_timeout",
	"superuser_reserved_connections", "synchronous_commit", "track_counts", "transaction_timeout",
}

// Settings of roles and databases are read by the other query, for all roles.
const serversSQL = `SELECT name, current_setting(name), source FROM pg_settings
WHERE name = ANY ($1) AND source NOT IN ('database', 'user', 'database user') ORDER BY name`

func readServers(row pgx.CollectableRow) (s setting, err error) {
	var source string
	err = row.Scan(&s.Name, &s.Value, &source)
	s.Place, s.Undo = everybody, fmt.Sprintf("ALTER SYSTEM RESET %s, or correct it in postgresql.conf; then SELECT pg_reload_conf()", s.Name)
	if source == "client" {
		s.Place, s.Undo = "programs with this connection string", fmt.Sprintf("remove %s from the connection string", s.Name)
	}
	return s, err
}

// rolesSQL reads the settings of databases, and of roles that write a table. A superuser counts if it owns the table or runs the check.
const rolesSQL = `
WITH writers AS (
	SELECT r.oid, r.rolname FROM pg_class AS c JOIN pg_roles AS r ON r.rolcanlogin
		AND (NOT r.rolsuper OR r.oid = c.relowner OR r.rolname = current_user)
	WHERE c.oid = to_regclass($1) AND has_table_privilege(r.oid, c.oid, 'INSERT')),
said AS (
	SELECT w.oid AS writer, s.setrole, s.setdatabase, split_part(c, '=', 1) AS name, substr(c, strpos(c, '=') + 1) AS value,
		CASE WHEN s.setrole <> 0 THEN w.rolname::text ELSE '' END AS role,
			CASE WHEN s.setdatabase <> 0 THEN current_database()::text ELSE '' END AS base
	FROM writers AS w JOIN pg_db_role_setting AS s ON s.setrole IN (0, w.oid)
		AND s.setdatabase IN (0, (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())), unnest(s.setconfig) AS c),
counts AS (
	SELECT DISTINCT ON (writer, name) name, value, role, base FROM said WHERE name = ANY ($2)
	ORDER BY writer, name, setrole <> 0 DESC, setdatabase <> 0 DESC)
SELECT DISTINCT name, value, role, base FROM counts ORDER BY name, role, base`

func readRoles(row pgx.CollectableRow) (s setting, err error) {
	var role, base string
	err = row.Scan(&s.Name, &s.Value, &role, &base)
	quote := func(name string) string { return pgx.Identifier{name}.Sanitize() }
	switch {
	case role != "" && base != "":
		s.Place, s.Undo = fmt.Sprintf("role %s in database %s", role, base), fmt.Sprintf("ALTER ROLE %s IN DATABASE %s RESET %s", quote(role),
			quote(base), s.Name)
	case role != "":
		s.Place, s.Undo = "role "+role, fmt.Sprintf("ALTER ROLE %s RESET %s", quote(role), s.Name)
	case base != "":
		s.Place, s.Undo = "database "+base, fmt.Sprintf("ALTER DATABASE %s RESET %s", quote(base), s.Name)
	default:
		s.Place, s.Undo = "all roles", fmt.Sprintf("ALTER ROLE ALL RESET %s", s.Name)
	}
	return s, err
}

func isOff(value string) bool {
	return slices.Contains([]string{"off", "false", "no", "0"}, strings.ToLower(value))
}

func isOn(value string) bool { return !isOff(value) }

// shorter reports whether a timeout is below the limit. Zero means no timeout.
func shorter(limit time.Duration) func(string) bool {
	return func(value string) bool {
		d, ok := timeOf(value)
		return ok && d > 0 && d < limit
	}
}

// times are PostgreSQL's units of time in milliseconds.
var times = map[string]float64{"us": 0.001, "": 1, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}

// timeOf parses a setting of a time.
func timeOf(value string) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	i := strings.IndexFunc(value, func(r rune) bool { return r != '.' && r != '-' && (r < '0' || r > '9') })
	if i < 0 {
		i = len(value)
	}
	n, err := strconv.ParseFloat(value[:i], 64)
	unit, known := times[strings.TrimSpace(value[i:])]
	return time.Duration(n * unit * float64(time.Millisecond)), err == nil && known
}

func lookAtDurability(ctx context.Context, x *exam) (string, []Finding, error) {
	found, err := x.judge(ctx,
		rule{"fsync", Problem, isOff, "a crash of the machine can destroy the database"},
		rule{"full_page_writes", Problem, isOff, "a crash of the machine can leave pages that are half written"},
		rule{"synchronous_commit", Warning, isOff, "positions of sinks, and your own commits, may be lost in a crash"})
	return "committed data survives a crash", found, err
}

func lookAtTimeLimits(ctx context.Context, x *exam) (string, []Finding, error) {
	found, err := x.judge(ctx,
		rule{"statement_timeout", Warning, shorter(x.limits.statement),
			"retention, migrations and verify have statements that take longer on large tables"},
		rule{"lock_timeout", Warning, shorter(x.limits.lock), "work fails on a busy database instead of waiting"},
		rule{"transaction_timeout", Warning, shorter(x.limits.statement), "it ends connections of long transactions"},
		rule{"idle_in_transaction_session_timeout", Warning, shorter(x.limits.idleTx), "a slow node loses its connection"},
		rule{"idle_session_timeout", Warning, func(v string) bool { d, ok := timeOf(v); return ok && d > 0 },
			"it ends the connection for notifications, and idle ones of the pools"})
	return "no setting ends sessions or statements of nodes", found, err
}
