package schema

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed indexes.txt
var indexList string

// Index is one that the migrations make.
type Index struct {
	Table, Name string
	Definition  string // as IndexDefinition has it, in the schema pawl; see In
}

// IndexDefinition returns an SQL expression for the definition of an index, in the schema pawl whatever the real one is. PostgreSQL
// writes it with the fewest parentheses, since a dump and a restore may change the others. oid is an expression, too.
func IndexDefinition(oid string) string {
	return `regexp_replace(pg_get_indexdef(` + oid + `, 0, true), ' ON (ONLY )?([^ ]+\.)?([^ .]+) USING ', ' ON \1pawl.\3 USING ')`
}

// Indexes are all of them but those of partitions, by table and name. A test compares them with what the migrations make.
var Indexes = mustRead(indexList)

// WeekKey are the columns of the primary key of each partition of the outbox, as pg_get_indexdef has them.
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
