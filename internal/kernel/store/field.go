package store

import (
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/workflow"
)

// field is a column of the rows of T, with the functions that write and read its value.
type field[T any] struct {
	rows.Column
	from string                    // expression of a SELECT; defaults to the column
	add  func(*rows.Set, *T) error // nil: it is only read
	read func(*rows.Row, *T) error // nil: it is only written
}

// as reads the column with an expression.
func (f field[T]) as(expression string) field[T] {
	f.from = expression
	return f
}

// plain returns a field whose encoding cannot fail. Values for which null is true are written as NULL; NULL is read as the zero value.
func plain[T, V any](name string, t rows.Type, at func(*T) *V, null func(V) bool, add func(*rows.Set, V), read func(*rows.Row) V) field[T] {
	return field[T]{Column: rows.Of(name, t),
		add: func(s *rows.Set, row *T) error {
			if v := *at(row); null != nil && null(v) {
				s.Null()
			} else {
				add(s, v)
			}
			return nil
		},
		read: func(r *rows.Row, row *T) error {
			*at(row) = read(r)
			return nil
		}}
}

func zero[V comparable](v V) bool {
	var none V
	return v == none
}

func text[T any, V ~string](name string, at func(*T) *V) field[T] {
	return plain(name, rows.Text, at, nil, func(s *rows.Set, v V) { s.Text(string(v)) }, func(r *rows.Row) V { return V(r.Text()) })
}

func textOrNull[T any, V ~string](name string, at func(*T) *V) field[T] {
	return plain(name, rows.Text, at, zero[V], func(s *rows.Set, v V) { s.Text(string(v)) }, func(r *rows.Row) V { return V(r.Text()) })
}

func bigint[T any](name string, at func(*T) *int64) field[T] {
	return plain(name, rows.Int8, at, nil, (*rows.Set).Int8, (*rows.Row).Int8)
}

func bigintOrNull[T any](name string, at func(*T) *int64) field[T] {
	return plain(name, rows.Int8, at, zero[int64], (*rows.Set).Int8, (*rows.Row).Int8)
}

func integer[T any](name string, at func(*T) *int) field[T] {
	return plain(name, rows.Int4, at, nil, (*rows.Set).Int4, (*rows.Row).Int4)
}

func integerOrNull[T any](name string, at func(*T) *int) field[T] {
	return plain(name, rows.Int4, at, zero[int], (*rows.Set).Int4, (*rows.Row).Int4)
}

func smallintOrNull[T any](name string, at func(*T) *int) field[T] {
	return plain(name, rows.Int2, at, zero[int], (*rows.Set).Int2, (*rows.Row).Int2)
}

func boolean[T any](name string, at func(*T) *bool) field[T] {
	return plain(name, rows.Bool, at, nil, (*rows.Set).Bool, (*rows.Row).Bool)
}

func id[T any](name string, at func(*T) *uuid.UUID) field[T] {
	return plain(name, rows.UUID, at, nil, (*rows.Set).UUID, (*rows.Row).UUID)
}

func place[T any](name string, at func(*T) *rows.RowID) field[T] {
	return plain(name, rows.TID, at, nil, (*rows.Set).TID, (*rows.Row).TID)
}

func hash[T any](name string, at func(*T) *[32]byte) field[T] {
	return plain(name, rows.Bytea, at, nil, func(s *rows.Set, v [32]byte) { s.Bytes(v[:]) }, (*rows.Row).Hash)
}

func moment[T any](name string, at func(*T) *time.Time) field[T] {
	return plain(name, rows.Timestamptz, at, nil, (*rows.Set).Time, (*rows.Row).Time)
}

func momentOrNull[T any](name string, at func(*T) *time.Time) field[T] {
	return plain(name, rows.Timestamptz, at, time.Time.IsZero, (*rows.Set).Time, (*rows.Row).Time)
}

// raw is text or JSON; nil is NULL.
func raw[T any](name string, t rows.Type, at func(*T) *[]byte) field[T] {
	return plain(name, t, at, nil, (*rows.Set).Bytes, (*rows.Row).Bytes)
}

// encoded is a value stored as json or jsonb; NULL if none is true.
func encoded[T, V any](name string, t rows.Type, at func(*T) *V, none func(*V) bool) field[T] {
	add, read := (*rows.Set).Bytes, (*rows.Row).Bytes
	if t == rows.JSONB {
		add, read = (*rows.Set).JSONB, (*rows.Row).JSONB
	}
	return field[T]{Column: rows.Of(name, t),
		add: func(s *rows.Set, row *T) error {
			v := at(row)
			if none(v) {
				s.Null()
				return nil
			}
			text, err := json.Marshal(v, json.Deterministic(true))
			if err != nil {
				return &workflow.Error{Code: workflow.Internal, Message: "the instance's " + name + " cannot be encoded", Cause: err}
			}
			add(s, text)
			return nil
		},
		read: func(r *rows.Row, row *T) error {
			if text := read(r); text != nil {
				return json.Unmarshal(text, at(row))
			}
			return nil
		}}
}

func noMap[K comparable, V any](m *map[K]V) bool { return len(*m) == 0 }

// within converts fields of T to fields of a type that contains a T.
func within[S, T any](of func(*S) *T, fields ...field[T]) []field[S] {
	list := make([]field[S], len(fields))
	for i, f := range fields {
		list[i] = field[S]{Column: f.Column, from: f.from}
		if f.add != nil {
			list[i].add = func(s *rows.Set, row *S) error { return f.add(s, of(row)) }
		}
		if f.read != nil {
			list[i].read = func(r *rows.Row, row *S) error { return f.read(r, of(row)) }
		}
	}
	return list
}

func columnsOf[T any](fields []field[T]) []rows.Column {
	columns := make([]rows.Column, len(fields))
	for i, f := range fields {
		columns[i] = f.Column
	}
	return columns
}

// selectOf returns the list of a SELECT from a row with the alias.
func selectOf[T any](fields []field[T], alias string) string {
	list := make([]string, len(fields))
	for i, f := range fields {
		if list[i] = f.from; f.from == "" {
			list[i] = alias + "." + f.Name
		}
	}
	return strings.Join(list, ", ")
}

func readAll[T any](fields []field[T], r *rows.Row, into *T) error {
	for i := range fields {
		if err := fields[i].read(r, into); err != nil {
			return err
		}
	}
	return r.Err()
}

// Rows gathers rows for one kind of change. It is not safe for concurrent use, and can be reused after Reset.
type Rows[T any] struct {
	rows.Set
	fields []field[T]
}

// rowsOf returns a constructor of empty Rows.
func rowsOf[T any](fields []field[T]) func() *Rows[T] {
	return func() *Rows[T] { return &Rows[T]{Set: *rows.NewSet(columnsOf(fields)), fields: fields} }
}

// Add adds a row of a tenant. It returns an error for a value that cannot be encoded.
func (s *Rows[T]) Add(tenant string, row *T) error {
	s.Tenant(tenant)
	for i := range s.fields {
		if err := s.fields[i].add(&s.Set, row); err != nil {
			return err
		}
	}
	return nil
}

// named returns the fields with these names, in their order.
func named[T any](fields []field[T], names ...string) []field[T] {
	list := make([]field[T], len(names))
	for i, name := range names {
		at := slices.IndexFunc(fields, func(f field[T]) bool { return f.Name == name })
		list[i] = fields[at]
	}
	return list
}
