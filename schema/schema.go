// Package schema defines Pawl's tables as numbered migrations, and applies them.
//
// Statements in all packages have {pawl} instead of the schema's name; [In] replaces it. PostgreSQL
// rejects a statement without the replacement, whatever the name is.
package schema

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Default is the default name of the schema.
const Default = "pawl"

var nameForm = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// qualifier matches the schema's name in migrations, which are written for a schema named pawl and never change after their release.
var qualifier = regexp.MustCompile(`\bpawl\.`)

// CheckName rejects a schema name that would need quotes.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("schema name %q is not 1 to 63 characters of a-z, 0-9 and _, starting with a letter", name)
	}
	return nil
}

// In returns the statement for the named schema.
func In(name, sql string) string { return strings.ReplaceAll(sql, "{pawl}", quoted(name)) }

// For returns [In] for the named schema.
func For(name string) func(sql string) string {
	return func(sql string) string { return In(name, sql) }
}

// quoted returns a schema's name for a statement.
func quoted(name string) string {
	if name == Default {
		return name
	}
	return pgx.Identifier{name}.Sanitize()
}

// migrationIn returns a migration for the named schema.
func migrationIn(name, sql string) string {
	return qualifier.ReplaceAllLiteralString(sql, quoted(name)+".")
}

// Status is the state of a database's schema.
type Status struct {
	Applied []Applied   // in order; empty without a schema of Pawl
	Pending []Migration // what this program would apply, in order
}

// Applied is an applied migration.
type Applied struct {
	Number    int
	Name      string
	AppliedAt time.Time
	Needs     int // newest migration that a program must know to work with the tables
}

// Version returns the number of the newest applied migration, or 0.
func (s *Status) Version() int {
	if len(s.Applied) == 0 {
		return 0
	}
	return s.Applied[len(s.Applied)-1].Number
}

// Err returns nil if the schema is what this program needs, otherwise ErrBehind, ErrNewer or ErrForeign.
func (s *Status) Err() error {
	needs := 0
	for _, a := range s.Applied {
		if a.Number >= 1 && a.Number <= len(Migrations) && a.Name != Migrations[a.Number-1].Name {
			return fmt.Errorf("%w: migration %d is %q there, and %q here", ErrForeign, a.Number, a.Name, Migrations[a.Number-1].Name)
		}
		needs = max(needs, a.Needs)
	}
	switch at := s.Version(); {
	case at > len(Migrations) && needs > len(Migrations):
		return fmt.Errorf("%w (schema version %d, program %d): run the one that has migrated it, or a newer one", ErrNewer, at, len(Migrations))
	case at < len(Migrations):
		return fmt.Errorf("%w (schema version %d, program %d)", ErrBehind, at, len(Migrations))
	}
	return nil
}

// StatusOf returns the state of a schema. It writes nothing and works through a pooler.
//
// Errors: an invalid name; ErrForeign for a different table of migrations; those of the database.
func StatusOf(ctx context.Context, by interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, name string) (s Status, err error) {
	if err := CheckName(name); err != nil {
		return s, err
	}
	sql := In(name, "SELECT number, name, applied_at, coalesce(needs, number) FROM {pawl}.migration ORDER BY number")
	found, _ := by.Query(ctx, sql, pgx.QueryExecModeExec) // CollectRows returns its error
	s.Applied, err = pgx.CollectRows(found, pgx.RowToStructByPos[Applied])
	if isState(err, "42703") { // undefined column
		return s, fmt.Errorf("%w: the table migration in schema %s is another one (%w); name another schema with --schema", ErrForeign, name, err)
	}
	if err != nil && !isState(err, "42P01", "3F000") { // no table, no schema
		return s, fmt.Errorf("read the version of schema %s: %w", name, err)
	}
	s.Pending = Migrations[min(s.Version(), len(Migrations)):]
	return s, nil
}

// Plan returns the script that [Migrate] would execute on a schema at a version, each step in its own transaction under the same lock.
// It can be executed instead of Migrate. It is empty if nothing is pending.
func Plan(name string, version int) string {
	var b strings.Builder
	step := func(sql string) { fmt.Fprintf(&b, "BEGIN;\n%s;\n%s\nCOMMIT;\n", lockSQL(name), strings.TrimSpace(sql)) }
	pending := Migrations[min(version, len(Migrations)):]
	if version == 0 && len(pending) > 0 {
		step(prepareSQL(name))
	}
	for _, m := range pending {
		fmt.Fprintf(&b, "\n-- %04d_%s\n", m.Number, m.Name)
		step(migrationIn(name, m.SQL) + In(name,
			fmt.Sprintf("\nINSERT INTO {pawl}.migration (number, name, needs) VALUES (%d, '%s', %d);", m.Number, m.Name, m.Needs)))
	}
	return b.String()
}
