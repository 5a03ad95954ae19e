// Package schema holds Pawl's tables as numbered migrations, and applies them.
//
// The SQL of this and of every other package has {pawl} instead of the schema's name, and [In] fills the name in. PostgreSQL refuses a
// statement in which that was forgotten, whatever the name is.
package schema

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Default is the name of the schema unless the configuration says otherwise.
const Default = "pawl"

var nameForm = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// qualifier is the schema's name in migrations, which are written for a schema named pawl, and stay as they were released.
var qualifier = regexp.MustCompile(`\bpawl\.`)

// CheckName refuses a schema name that would need care wherever it is written.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("the schema name %q is not 1 to 63 of a-z, 0-9 and _, beginning with a letter", name)
	}
	return nil
}

// In returns the statement for the named schema.
func In(name, sql string) string { return strings.ReplaceAll(sql, "{pawl}", quoted(name)) }

// For returns [In] for the named schema.
func For(name string) func(sql string) string {
	return func(sql string) string { return In(name, sql) }
}

// quoted is a schema's name as statements have it.
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
