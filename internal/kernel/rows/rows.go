// Package rows gathers the rows of a table by column in PostgreSQL's binary format, and writes the statements that take them. One
// description of a row serves a single row, sent as scalars (faster to start), and many, sent as arrays (faster to run). Every row belongs
// to a tenant; see [Form].
package rows

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/google/uuid"
)

// Type is a column's type.
type Type struct {
	Name  string
	oid   uint32
	array uint32
}

// The types in use. JSON and Text take their text as it is.
var (
	Bool        = Type{"boolean", 16, 1000}
	Bytea       = Type{"bytea", 17, 1001}
	Int8        = Type{"bigint", 20, 1016}
	Int2        = Type{"smallint", 21, 1005}
	Int4        = Type{"int", 23, 1007}
	Text        = Type{"text", 25, 1009}
	TID         = Type{"tid", 27, 1010}
	JSON        = Type{"json", 114, 199}
	Timestamptz = Type{"timestamptz", 1184, 1185}
	UUID        = Type{"uuid", 2950, 2951}
	JSONB       = Type{"jsonb", 3802, 3807}
)

// OID returns the type's object id as a scalar or as an array.
func (t Type) OID(array bool) uint32 {
	if array {
		return t.array
	}
	return t.oid
}

// Column is a named, typed column.
type Column struct {
	Name string
	Type Type
}

// Of makes a column.
func Of(name string, t Type) Column { return Column{name, t} }

// headerSize is the length of a one-dimensional array's header on the wire.
const headerSize = 20

// Set gathers rows: for each, the tenant, then the values in the order of the columns. It is not safe for concurrent use, and can be reused
// after Reset.
type Set struct {
	types []Type // the tenant's first
	cols  []column
	next  int
	n     int

	named []Column // not nil: Col adds to it
}

type column struct {
	buf   []byte // the array header, then for each element its length and bytes
	nulls bool
}

// NewSet makes an empty set of rows with these columns.
func NewSet(columns []Column) *Set {
	s := &Set{types: make([]Type, 1+len(columns)), cols: make([]column, 1+len(columns))}
	s.types[0] = Text
	for i, c := range columns {
		s.types[1+i] = c.Type
	}
	s.Reset()
	return s
}

// ColumnsOf returns the columns of the rows that add writes, except the tenant.
func ColumnsOf(add func(*Set)) []Column {
	s := &Set{named: []Column{}, cols: make([]column, 1)} // the tenant's
	add(s)
	return s.named
}

// Col names the column of the next value for [ColumnsOf]; it has no effect on a set that gathers rows.
func (s *Set) Col(name string, t Type) *Set {
	if s.named != nil {
		s.named, s.cols = append(s.named, Of(name, t)), append(s.cols, column{})
	}
	return s
}

// maxKept bounds the memory that a column of an empty set keeps, in bytes.
const maxKept = 512 << 10

// Reset removes the rows and keeps memory up to maxKept.
func (s *Set) Reset() {
	for i := range s.cols {
		if c := cap(s.cols[i].buf); c < headerSize || c > maxKept {
			s.cols[i].buf = make([]byte, headerSize, 256)
		}
		s.cols[i].buf = s.cols[i].buf[:headerSize]
		s.cols[i].nulls = false
	}
	s.next, s.n = 0, 0
}

// Len is the number of complete rows.
func (s *Set) Len() int { return s.n }

// Params returns the rows as the parameters of Builder.Source, for ManyTenants with the tenants first. A Single set has exactly one row.
// The parameters share memory with the set.
func (s *Set) Params(f Form) [][]byte {
	if s.next != 0 {
		panic("rows: the last row is not complete")
	}
	out := make([][]byte, 0, len(s.cols))
	for i := range s.cols {
		c := &s.cols[i]
		switch {
		case i == 0 && f != ManyTenants:
		case f != Single:
			oid := s.types[i].oid
			nulls := uint32(0)
			if c.nulls {
				nulls = 1
			}
			h := c.buf[:0]
			h = binary.BigEndian.AppendUint32(h, 1) // dimensions
			h = binary.BigEndian.AppendUint32(h, nulls)
			h = binary.BigEndian.AppendUint32(h, oid)
			h = binary.BigEndian.AppendUint32(h, uint32(s.n))
			binary.BigEndian.AppendUint32(h, 1) // lower bound
			out = append(out, c.buf)
		case int32(binary.BigEndian.Uint32(c.buf[headerSize:])) >= 0:
			out = append(out, c.buf[headerSize+4:])
		default:
			out = append(out, nil)
		}
	}
	return out
}

// advance returns the column for the next value and steps on.
func (s *Set) advance() *column {
	c := &s.cols[s.next]
	if s.next++; s.next == len(s.cols) {
		s.next = 0
		s.n++
	}
	return c
}

func (c *column) length(n int) { c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(n)) }

// Tenant begins a row: it is this tenant's.
func (s *Set) Tenant(v string) { s.Text(v) }

// Null adds a NULL.
func (s *Set) Null() {
	c := s.advance()
	c.nulls = true
	c.buf = binary.BigEndian.AppendUint32(c.buf, 0xffffffff)
}

// Text adds a text or json value.
func (s *Set) Text(v string) {
	c := s.advance()
	c.length(len(v))
	c.buf = append(c.buf, v...)
}

// TextOrNull adds a text value, or NULL for "".
func (s *Set) TextOrNull(v string) {
	if v == "" {
		s.Null()
		return
	}
	s.Text(v)
}

// Bytes adds a bytea, text or json value; nil is NULL.
func (s *Set) Bytes(v []byte) {
	if v == nil {
		s.Null()
		return
	}
	c := s.advance()
	c.length(len(v))
	c.buf = append(c.buf, v...)
}

// JSONB adds a jsonb value; nil is NULL.
func (s *Set) JSONB(v []byte) {
	if v == nil {
		s.Null()
		return
	}
	c := s.advance()
	c.length(1 + len(v))
	c.buf = append(c.buf, 1) // the version of the format
	c.buf = append(c.buf, v...)
}

// UUID adds a uuid.
func (s *Set) UUID(v uuid.UUID) {
	c := s.advance()
	c.length(16)
	c.buf = append(c.buf, v[:]...)
}

// RowID is the location of a row in its table, as PostgreSQL sends it.
type RowID [6]byte

// TID adds a tid.
func (s *Set) TID(v RowID) {
	c := s.advance()
	c.length(len(v))
	c.buf = append(c.buf, v[:]...)
}

// Int8 adds a bigint.
func (s *Set) Int8(v int64) {
	c := s.advance()
	c.length(8)
	c.buf = binary.BigEndian.AppendUint64(c.buf, uint64(v))
}

// Int4 adds an int.
func (s *Set) Int4(v int) {
	c := s.advance()
	c.length(4)
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(int32(v)))
}

// Int2 adds a smallint.
func (s *Set) Int2(v int) {
	c := s.advance()
	c.length(2)
	c.buf = binary.BigEndian.AppendUint16(c.buf, uint16(int16(v)))
}

// Bool adds a boolean.
func (s *Set) Bool(v bool) {
	c := s.advance()
	c.length(1)
	b := byte(0)
	if v {
		b = 1
	}
	c.buf = append(c.buf, b)
}

// pgEpoch is 2000-01-01 in microseconds since 1970.
const pgEpoch = 946684800 * 1_000_000

// Time adds a timestamptz, to the microsecond.
func (s *Set) Time(v time.Time) {
	c := s.advance()
	c.length(8)
	c.buf = binary.BigEndian.AppendUint64(c.buf, uint64(v.UnixMicro()-pgEpoch))
}

// Infinity adds the timestamptz that is after all others.
func (s *Set) Infinity() {
	c := s.advance()
	c.length(8)
	c.buf = binary.BigEndian.AppendUint64(c.buf, math.MaxInt64)
}
