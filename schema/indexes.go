package schema

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

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
