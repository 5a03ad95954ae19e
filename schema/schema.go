// Package schema holds Pawl's tables as numbered migrations, and applies them.
//
// The SQL of this and of every other package is written for a schema named
// pawl; [In] puts another name in its place.
package schema

import (
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
)

// Default is the name of the schema unless the configuration says otherwise.
const Default = "pawl"

var nameForm = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

var qualifier = regexp.MustCompile(`\bpawl\.`)

// CheckName refuses a schema name that would need care wherever it is written.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("the schema name %q is not 1 to 63 of a-z, 0-9 and _, beginning with a letter", name)
	}
	return nil
}

// In returns the statement for the named schema.
func In(name, sql string) string {
	if name == Default {
		return sql
	}
	return qualifier.ReplaceAllLiteralString(sql, pgx.Identifier{name}.Sanitize()+".")
}
