// Package schema defines Pawl's tables as numbered migrations, and applies them.
//
// Statements in all packages have {pawl} instead of the schema's name; [In] replaces it. PostgreSQL
// rejects a statement without the replacement, whatever the name is.
package schema

import (
	"fmt"
	"regexp"
	"strings"

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
