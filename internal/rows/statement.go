package rows

import (
	"strconv"
	"strings"
)

// Statement is the text of one statement and the types of its parameters.
type Statement struct {
	SQL  string
	OIDs []uint32
}

// Builder writes a statement piece by piece and numbers its parameters.
type Builder struct {
	sql  strings.Builder
	oids []uint32
}

// Add appends text.
func (b *Builder) Add(parts ...string) *Builder {
	for _, p := range parts {
		b.sql.WriteString(p)
	}
	return b
}

// Param appends a new parameter, as $n::type.
func (b *Builder) Param(t Type, array bool) *Builder {
	b.oids = append(b.oids, t.OID(array))
	b.sql.WriteString("$" + strconv.Itoa(len(b.oids)) + "::" + t.Name)
	if array {
		b.sql.WriteString("[]")
	}
	return b
}

// Params appends new parameters for the columns, separated by commas.
func (b *Builder) Params(columns []Column, array bool) *Builder {
	for i, c := range columns {
		if i > 0 {
			b.sql.WriteString(", ")
		}
		b.Param(c.Type, array)
	}
	return b
}

// Source appends a row source named u with these columns and, last, ord, which
// counts from 1: VALUES of scalars for one row, unnested arrays for many.
func (b *Builder) Source(columns []Column, array bool) *Builder {
	if !array {
		return b.Add("(VALUES (").Params(columns, false).Add(", 1)) AS u(", Names(columns), ", ord)")
	}
	return b.Add("unnest(").Params(columns, true).Add(") WITH ORDINALITY AS u(", Names(columns), ", ord)")
}

// Statement returns what was written.
func (b *Builder) Statement() Statement {
	return Statement{SQL: b.sql.String(), OIDs: b.oids}
}

// Names lists the columns' names.
func Names(columns []Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}
