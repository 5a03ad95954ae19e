package schema

import (
	"cmp"
	"context"
	"embed"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/schema/pooler"
)

//go:embed migrations/*.sql
var files embed.FS

// Migration is a numbered step of the schema.
type Migration struct {
	Number int
	Name   string
	Needs  int    // newest migration that a program must know to work after this one; at most Number
	SQL    string // for the schema pawl; see In
}

// needs matches the line "-- needs: 8" of a migration with which older programs can work. Without it they cannot.
var needs = regexp.MustCompile(`(?m)^-- needs: ([0-9]+)$`)

// Migrations lists all steps in order, numbered from 1 without gaps.
var Migrations = mustLoad(files)

// ErrNewer reports a database that a newer program has migrated, so that this one cannot work with it.
var ErrNewer = errors.New("the database is newer than this program")

// ErrForeign reports a table of migrations that are not this program's: of another program, or an unreleased build.
var ErrForeign = errors.New("the tables were not made by this program, or one before it")

// ErrBehind reports a database that lacks required migrations.
var ErrBehind = errors.New("the database is older than this program: migrate it")

// minServer is PostgreSQL 14 as server_version_num.
const minServer = 140000

// Migrate migrates a schema, each step in its own transaction, under an advisory lock, so that nodes may start concurrently. It returns
// the number of applied steps. A failed step leaves the database as it was after the previous step.
//
// Errors: ErrNewer, ErrForeign; ErrRights if the role lacks rights on the schema; an unsupported
// server; an unexpected pooler; those of the database.
func Migrate(ctx context.Context, pool *pgxpool.Pool, name string) (int, error) {
	if err := CheckName(name); err != nil {
		return 0, err
	}
	if err := pooler.Check(ctx, pool); err != nil {
		return 0, err
	}
	found, err := StatusOf(ctx, pool, name)
	if isState(err, forbidden) { // the schema exists, but belongs to another role
		err = cmp.Or(CheckRights(ctx, pool, name), err)
	}
	if err == nil && !errors.Is(found.Err(), ErrBehind) {
		// Nothing to do, so the role need not own the tables.
		if err = found.Err(); err == nil {
			return 0, nil
		}
	}
	applied := 0
	if err == nil {
		err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return prepare(ctx, tx, name) })
	}
	for err == nil {
		var more bool
		err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
			more, err = step(ctx, tx, name)
			return err
		})
		if !more {
			break
		}
		if err == nil {
			applied++
		}
	}
	if isState(err, forbidden) {
		err = fmt.Errorf(`%w; run "migrate up" as the owner of the tables`, err)
	}
	if err != nil {
		return applied, fmt.Errorf("migrate schema %s: %w", name, err)
	}
	return applied, nil
}

// Check reports whether the schema is what this program needs: nil, ErrBehind, ErrNewer or ErrForeign.
func Check(ctx context.Context, pool *pgxpool.Pool, name string) error {
	s, err := StatusOf(ctx, pool, name)
	if err == nil && len(s.Applied) == 0 {
		err = fmt.Errorf("%w (schema %s has no tables of Pawl; are --database and --schema the right ones?)", ErrBehind, name)
	}
	if err != nil {
		return err
	}
	return s.Err()
}

// isState reports whether err is an error of the database with one of the SQLSTATEs.
func isState(err error, states ...string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(states, e.Code)
}

const forbidden = "42501"

func prepare(ctx context.Context, tx pgx.Tx, name string) error {
	var server int
	if err := tx.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&server); err != nil {
		return err
	}
	if server < minServer {
		return fmt.Errorf("PostgreSQL 14 or newer is needed, this is %d", server/10000)
	}
	if _, err := tx.Exec(ctx, lockSQL(name)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, prepareSQL(name))
	return err
}

// prepareSQL creates the schema and the table of applied migrations if absent.
func prepareSQL(name string) string {
	return "CREATE SCHEMA IF NOT EXISTS " + pgx.Identifier{name}.Sanitize() + ";" + In(name, `
CREATE TABLE IF NOT EXISTS {pawl}.migration (
	number int PRIMARY KEY,
	name text NOT NULL,
	applied_at timestamptz NOT NULL DEFAULT now(),
	needs int
);
COMMENT ON TABLE {pawl}.migration IS 'The migrations that have been applied.';
COMMENT ON COLUMN {pawl}.migration.number IS 'Counts from 1 without a gap.';
COMMENT ON COLUMN {pawl}.migration.name IS 'What it was for.';
COMMENT ON COLUMN {pawl}.migration.applied_at IS 'When it was applied.';
COMMENT ON COLUMN {pawl}.migration.needs IS 'The newest migration that a program has to know to work on the tables; NULL: this one.';
`)
}

// step applies the next migration and reports whether there may be more.
func step(ctx context.Context, tx pgx.Tx, name string) (more bool, err error) {
	if _, err := tx.Exec(ctx, lockSQL(name)); err != nil {
		return false, err
	}
	s, err := StatusOf(ctx, tx, name)
	if err != nil {
		return false, err
	}
	if len(s.Pending) == 0 {
		return false, s.Err()
	}
	m := s.Pending[0]
	if _, err := tx.Exec(ctx, migrationIn(name, m.SQL)); err != nil {
		return false, fmt.Errorf("migration %04d_%s: %w", m.Number, m.Name, err)
	}
	_, err = tx.Exec(ctx, In(name, "INSERT INTO {pawl}.migration (number, name, needs) VALUES ($1, $2, $3)"), m.Number, m.Name, m.Needs)
	return true, err
}

// lockSQL locks out other nodes that migrate, for a transaction. It has no parameters, so that it can be part of a script.
func lockSQL(name string) string {
	return "SELECT pg_advisory_xact_lock(hashtextextended('pawl migrate " + name + "', 0))"
}

func mustLoad(fsys fs.FS) []Migration {
	names, err := fs.Glob(fsys, "migrations/*.sql")
	if err != nil {
		panic(err)
	}
	var list []Migration
	for _, path := range names { // Glob returns them in lexical order
		base := strings.TrimSuffix(strings.TrimPrefix(path, "migrations/"), ".sql")
		number, title, _ := strings.Cut(base, "_")
		n, err := strconv.Atoi(number)
		if err != nil || n != len(list)+1 {
			panic(fmt.Sprintf("schema: migration %s is not number %d", path, len(list)+1))
		}
		sql, err := fs.ReadFile(fsys, path)
		if err != nil {
			panic(err)
		}
		list = append(list, Migration{Number: n, Name: title, Needs: needsOf(path, n, string(sql)), SQL: string(sql)})
	}
	return list
}

func needsOf(path string, number int, sql string) int {
	said := needs.FindStringSubmatch(sql)
	if said == nil {
		return number
	}
	n, err := strconv.Atoi(said[1])
	if err != nil || n < 1 || n > number {
		panic(fmt.Sprintf("schema: migration %s has invalid needs, not 1 to %d", path, number))
	}
	return n
}

//go:embed indexes.txt
var indexList string

// Index is an index created by the migrations.
type Index struct {
	Table, Name string
	Definition  string // as returned by IndexDefinition, in the schema pawl; see In
}

// IndexDefinition returns a SQL expression for the definition of an index, in the schema pawl whatever the real one is, with the fewest
// parentheses, because a dump and a restore may change the others. oid is an expression.
func IndexDefinition(oid string) string {
	return `regexp_replace(pg_get_indexdef(` + oid + `, 0, true), ' ON (ONLY )?([^ ]+\.)?([^ .]+) USING ', ' ON \1pawl.\3 USING ')`
}

// Indexes lists all indexes except those of partitions, by table and name. A test compares them with the migrations.
var Indexes = mustRead(indexList)

// WeekKey is the primary key of each partition of the outbox, as in pg_get_indexdef.
const WeekKey = `(tenant, "position", type)`

var indexForm = regexp.MustCompile(`^CREATE (?:UNIQUE )?INDEX (\w+) ON (?:ONLY )?pawl\.(\w+) USING `)

func mustRead(lines string) (list []Index) {
	for definition := range strings.Lines(lines) {
		definition = strings.TrimSpace(definition)
		m := indexForm.FindStringSubmatch(definition)
		if m == nil {
			panic(fmt.Sprintf("schema: %q is not the definition of an index", definition))
		}
		list = append(list, Index{Table: m[2], Name: m[1], Definition: definition})
	}
	return list
}
