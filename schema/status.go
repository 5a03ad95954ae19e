package schema

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Status is how far the schema of a database is.
type Status struct {
	Applied []Applied   // in order; none where there is no schema of Pawl
	Pending []Migration // what this program would apply, in order
}

// Applied is a migration that was applied.
type Applied struct {
	Number    int
	Name      string
	AppliedAt time.Time
	Needs     int // the newest migration that a program has to know to work on the tables
}

// Version is the number of the newest migration that was applied, 0 for none.
func (s *Status) Version() int {
	if len(s.Applied) == 0 {
		return 0
	}
	return s.Applied[len(s.Applied)-1].Number
}

// Err is nil where the schema is what this program needs; else ErrBehind, ErrNewer or ErrForeign.
func (s *Status) Err() error {
	needs := 0
	for _, a := range s.Applied {
		if a.Number >= 1 && a.Number <= len(Migrations) && a.Name != Migrations[a.Number-1].Name {
			return fmt.Errorf("%w: migration %d is %q there, and %q here", ErrForeign, a.Number, a.Name, Migrations[a.Number-1].Name)
		}
		needs = max(needs, a.Needs)
	}
	return compare(s.Version(), needs)
}

// StatusOf reads how far the schema of that name is. It writes nothing, and works through a pooler.
//
// Errors: a name that cannot be; ErrForeign for a table of migrations of another shape; those of the database.
func StatusOf(ctx context.Context, by interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, name string) (s Status, err error) {
	if err := CheckName(name); err != nil {
		return s, err
	}
	sql := In(name, "SELECT number, name, applied_at, coalesce(needs, number) FROM {pawl}.migration ORDER BY number")
	found, err := by.Query(ctx, sql, pgx.QueryExecModeExec)
	if err == nil {
		s.Applied, err = pgx.CollectRows(found, pgx.RowToStructByPos[Applied])
	}
	if foreign(err) {
		return s, fmt.Errorf("%w: the table migration in schema %s is another one (%w); name another schema with --schema", ErrForeign, name, err)
	}
	if err != nil && !missing(err) {
		return s, fmt.Errorf("read the version of schema %s: %w", name, err)
	}
	s.Pending = Migrations[min(s.Version(), len(Migrations)):]
	return s, nil
}

// Plan is what [Migrate] runs on a schema of that name that is at a version: a script, each step in a
// transaction of its own under the same lock. Who runs it in the place of Migrate has the same tables. It is empty where
// nothing is pending.
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
