package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/app/dialerror"
	"github.com/pawlhq/pawl/schema"
)

func lookAtSchema(ctx context.Context, x *exam) (string, []Finding, error) {
	x.bare = true // until it is known
	s, err := schema.StatusOf(ctx, x.pool, x.config.Schema)
	if err == nil && errors.Is(s.Err(), schema.ErrForeign) {
		err = s.Err()
	}
	switch {
	case errors.Is(err, schema.ErrForeign):
		return "", []Finding{problem("", "select another schema with --schema, or use the program that created it", "%s", dialerror.OneLine(err))}, nil
	case err != nil:
		return "", nil, err
	}
	const migrate = todo(`see "migrate plan", and run "migrate up"`)
	switch err := s.Err(); {
	case s.Version() == 0:
		return "", []Finding{problem("", migrate, "schema %s has no tables of Pawl; are --database and --schema the right ones?",
			x.config.Schema)}, nil
	case errors.Is(err, schema.ErrNewer):
		return "", []Finding{problem("", "use the program that migrated it, or a newer one",
			"the schema has version %d, and this program needs %d", s.Version(), len(schema.Migrations))}, nil
	case err != nil:
		return "", []Finding{problem("", migrate, "the schema has version %d, and this program needs %d", s.Version(),
			len(schema.Migrations))}, nil
	}
	x.bare = false
	if n := len(schema.Migrations); s.Version() > n {
		return fmt.Sprintf("the schema has version %d, which is compatible with this program's version %d", s.Version(), n), nil, nil
	}
	return fmt.Sprintf("the schema has version %d, as this program needs", s.Version()), nil, nil
}

// index is an index of the database.
type index struct {
	Table, Name string
	Definition  string // as of the schema pawl
	Valid       bool
}

var indexesSQL = `
SELECT t.relname::text, c.relname::text, ` + schema.IndexDefinition("i.indexrelid") + `, i.indisvalid AND i.indisready
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_class AS t ON t.oid = i.indrelid
	JOIN pg_namespace AS n ON n.oid = t.relnamespace
WHERE n.nspname = $1 ORDER BY t.relname, c.relname`

func lookAtIndexes(ctx context.Context, x *exam) (string, []Finding, error) {
	list, err := read(ctx, x, pgx.RowToStructByPos[index], indexesSQL, x.config.Schema)
	if err != nil {
		return "", nil, err
	}
	there := map[string]index{}
	for _, i := range list {
		there[i.Name] = i
	}
	var found []Finding
	for _, want := range schema.Indexes {
		have, ok := there[want.Name]
		switch {
		case !ok:
			found = append(found, problem(want.Name, todo(x.remade(&want, false)),
				"table %s lacks the index %s, so queries read the whole table", want.Table, want.Name))
		case have.Definition != want.Definition:
			found = append(found, problem(want.Name, todo(x.remade(&want, true)),
				"the index %s of table %s differs from the migrations: %s", want.Name, want.Table, have.Definition))
		}
	}
	found = append(found, x.invalid(list)...)
	weeks, err := x.keyless(ctx)
	return fmt.Sprintf("all %d indexes of the migrations exist and are valid", len(schema.Indexes)), append(found, weeks...), err
}

// remade returns the statement that creates an index, after dropping one with its name if drop is set.
func (x *exam) remade(want *schema.Index, drop bool) string {
	if _, columns, _ := strings.Cut(want.Definition, "USING btree "); strings.HasSuffix(want.Name, "_pkey") {
		return fmt.Sprintf("ALTER TABLE %s.%s DROP CONSTRAINT IF EXISTS %s, ADD CONSTRAINT %[3]s PRIMARY KEY %s, while no node runs",
			x.schemaOf(), want.Table, want.Name, columns)
	}
	if drop {
		return fmt.Sprintf("DROP INDEX CONCURRENTLY %s.%s; then %s", x.schemaOf(), want.Name, x.concurrently(want.Definition))
	}
	return x.concurrently(want.Definition)
}

// concurrently returns the statement that creates an index without blocking writes.
func (x *exam) concurrently(definition string) string {
	return strings.Replace(x.in(strings.Replace(definition, "INDEX ", "INDEX CONCURRENTLY ", 1)), "ON ONLY ", "ON ", 1)
}

// invalid finds invalid indexes, including those of interrupted statements.
func (x *exam) invalid(list []index) (found []Finding) {
	for _, i := range list {
		if !i.Valid {
			found = append(found, problem(i.Name, dof("REINDEX INDEX CONCURRENTLY %s.%s, or drop it if it is left over from one", x.schemaOf(),
				i.Name),
				"the index %s of table %s is invalid: writes update it, and no query uses it", i.Name, i.Table))
		}
	}
	return found
}

// keyless finds partitions of the outbox without a primary key.
func (x *exam) keyless(ctx context.Context) ([]Finding, error) {
	const sql = `
SELECT p.relname::text FROM pg_inherits AS h JOIN pg_class AS p ON p.oid = h.inhrelid WHERE h.inhparent = to_regclass($1) AND NOT EXISTS (
	SELECT FROM pg_index AS i WHERE i.indrelid = p.oid AND i.indisprimary AND i.indisvalid AND pg_get_indexdef(i.indexrelid) LIKE '%' || $2)
ORDER BY p.relname`
	return read(ctx, x, func(row pgx.CollectableRow) (Finding, error) {
		var name string
		err := row.Scan(&name)
		return problem(name, dof("ALTER TABLE %s.%s ADD PRIMARY KEY %s", x.schemaOf(), name, schema.WeekKey),
			"%s, a partition of the outbox, has no primary key, so queries read all of it", name), err
	}, sql, x.in("{pawl}.outbox"), schema.WeekKey)
}

const deadRowsSQL = `SELECT relname::text, n_live_tup, n_dead_tup, coalesce(to_char(greatest(last_autovacuum, last_vacuum),
	'YYYY-MM-DD HH24:MI'), 'never')
FROM pg_stat_user_tables WHERE schemaname = $1 AND n_dead_tup >= $2 AND n_dead_tup >= $3::float8 * (n_live_tup + n_dead_tup)
	ORDER BY n_dead_tup DESC`

func lookAtDeadRows(ctx context.Context, x *exam) (string, []Finding, error) {
	found, err := read(ctx, x, func(row pgx.CollectableRow) (Finding, error) {
		var name, vacuumed string
		var live, dead int64
		err := row.Scan(&name, &live, &dead, &vacuumed)
		return warning(name, dof("remove what holds vacuum back (see transactions, replication-slots, autovacuum), then VACUUM (ANALYZE) %s.%s",
			x.schemaOf(), name),
			"table %s has %d dead rows and %d live ones; vacuumed: %s", name, dead, live, vacuumed), err
	}, deadRowsSQL, x.config.Schema, x.limits.deadRows, x.limits.deadShare)
	return "vacuum keeps up", found, err
}

const autovacuumSQL = `SELECT c.relname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace, unnest(c.reloptions) AS o
WHERE n.nspname = $1 AND o IN ('autovacuum_enabled=false', 'autovacuum_enabled=off', 'autovacuum_enabled=no', 'autovacuum_enabled=0')
	ORDER BY c.relname`

func lookAtAutovacuum(ctx context.Context, x *exam) (string, []Finding, error) {
	found, err := x.judge(ctx,
		rule{"autovacuum", Problem, isOff, "dead rows stay, statistics are stale, and eventually the server refuses transactions"},
		rule{"track_counts", Problem, isOff, "autovacuum needs these counts"})
	if err != nil {
		return "", nil, err
	}
	tables, err := read(ctx, x, func(row pgx.CollectableRow) (Finding, error) {
		var name string
		err := row.Scan(&name)
		return problem(name, dof("ALTER TABLE %s.%s RESET (autovacuum_enabled)", x.schemaOf(), name), "autovacuum is disabled for table %s",
			name), err
	}, autovacuumSQL, x.config.Schema)
	return "autovacuum is enabled for all tables", append(found, tables...), err
}
