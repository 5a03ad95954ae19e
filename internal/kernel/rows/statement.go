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

// Form is how a statement takes its rows.
type Form int

// Forms. In all but the last the tenant is the first parameter, so that a database distributed by tenant can route the statement.
const (
	Single      Form = iota // one row, as scalars
	OneTenant               // many rows of one tenant, as arrays
	ManyTenants             // many rows, as arrays, of which the first has the tenant of each
)

// Builder writes a statement piece by piece and numbers its parameters.
type Builder struct {
	form Form
	sql  strings.Builder
	oids []uint32
}

// For begins a statement that takes its rows in a form.
func For(f Form) *Builder {
	b := &Builder{form: f}
	if f != ManyTenants {
		b.oids = append(b.oids, Text.OID(false))
	}
	return b
}

// Form is how the statement takes its rows.
func (b *Builder) Form() Form { return b.form }

// Tenant returns an expression for the tenant of the source's row u.
func (b *Builder) Tenant() string {
	if b.form == ManyTenants {
		return "u.tenant"
	}
	return "$1::text"
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

// Source appends a row source named u with the columns and, last, ord, which counts from 1: VALUES for a single row, otherwise unnested
// arrays. For many tenants its first column is the tenant.
func (b *Builder) Source(columns []Column) *Builder {
	switch b.form {
	case Single:
		return b.Add("(VALUES (").Params(columns, false).Add(", 1)) AS u(", Names(columns), ", ord)")
	case ManyTenants:
		columns = append([]Column{Of("tenant", Text)}, columns...)
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
