package contract

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"
)

// Schema is a JSON Schema (draft 2020-12), which OpenAPI 3.1 and AsyncAPI 3 both have.
type Schema = *jsonschema.Schema

// Schemas derives the schemas of Go types as package json writes and reads them. A struct of this module is
// a schema of its own, by the name of its type, that others refer to.
type Schemas struct {
	Named map[string]Schema

	module string // the import path that ours begin with
	at     string // what references begin with
	types  map[string]reflect.Type
	fixed  map[reflect.Type]Schema
}

// NewSchemas makes an empty set for the types of a module. References begin with at, such as
// "#/components/schemas/". What is fixed is the schema of its type as it is given.
func NewSchemas(module, at string, fixed map[reflect.Type]Schema) *Schemas {
	s := &Schemas{Named: map[string]Schema{}, module: module, at: at, types: map[string]reflect.Type{}, fixed: map[reflect.Type]Schema{
		reflect.TypeFor[jsontext.Value](): {Description: "any JSON"},
		reflect.TypeFor[time.Time]():      {Type: "string", Format: "date-time"},
		reflect.TypeFor[uuid.UUID]():      {Type: "string", Format: "uuid"},
	}}
	maps.Copy(s.fixed, fixed)
	return s
}

// Answer is the schema of what is written. It may have more members one day, so others are not forbidden.
func (s *Schemas) Answer(t reflect.Type) Schema { return s.of(t, true) }

// Request is the schema of what is read: a member that is not known is refused.
func (s *Schemas) Request(t reflect.Type) Schema { return s.of(t, false) }

// Ref refers to a named schema.
func (s *Schemas) Ref(name string) Schema { return &jsonschema.Schema{Ref: s.at + name} }

func (s *Schemas) of(t reflect.Type, open bool) Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case s.ours(t):
		return s.name(t, open)
	case s.fixed[t] == nil && t.Kind() == reflect.Slice:
		return &jsonschema.Schema{Type: "array", Items: s.of(t.Elem(), open)}
	}
	return s.derive(t, s.fixed, open)
}

func (s *Schemas) ours(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && strings.HasPrefix(t.PkgPath(), s.module) && s.fixed[t] == nil
}

// name adds a struct of ours, and those that it has, and refers to it. Two with one name are a mistake of the program.
func (s *Schemas) name(t reflect.Type, open bool) Schema {
	ref := s.Ref(t.Name())
	if known := s.types[t.Name()]; known != nil {
		if known != t {
			panic(fmt.Sprintf("contract: %s and %s have one name", known, t))
		}
		return ref
	}
	s.types[t.Name()] = t
	known := maps.Clone(s.fixed)
	s.within(t, known, open)
	schema := s.derive(t, known, open)
	bound(schema, t)
	quote(schema, t)
	s.Named[t.Name()] = schema
	return ref
}

// quote makes texts of the numbers that are written as texts.
func quote(schema Schema, t reflect.Type) {
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if slices.Contains(strings.Split(options, ","), "string") {
			schema.Properties[name] = &jsonschema.Schema{Type: "string"}
		}
	}
}

// bound says which integers a member of 64 bits holds.
func bound(schema Schema, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		inner := field.Type
		for inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if field.Anonymous && inner.Kind() == reflect.Struct {
			bound(schema, inner)
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if p := schema.Properties[name]; p != nil && p.Type == "integer" && (inner.Kind() == reflect.Int64 || inner.Kind() == reflect.Int) {
			p.Format, p.Minimum, p.Maximum = "int64", jsonschema.Ptr(-math.Ldexp(1, 63)), jsonschema.Ptr(math.Ldexp(1, 63))
		}
	}
}

// within names the structs of ours that the members of t have.
func (s *Schemas) within(t reflect.Type, known map[reflect.Type]Schema, open bool) {
	for i := range t.NumField() {
		field := t.Field(i)
		inner := field.Type
		for s.fixed[inner] == nil && (inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map) {
			inner = inner.Elem()
		}
		switch {
		case field.Anonymous && inner.Kind() == reflect.Struct:
			s.within(inner, known, open)
		case field.IsExported() && field.Tag.Get("json") != "-" && s.ours(inner):
			known[inner] = s.name(inner, open)
		}
	}
}

func (s *Schemas) derive(t reflect.Type, known map[reflect.Type]Schema, open bool) Schema {
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		panic("contract: " + err.Error())
	}
	tidy(schema, open)
	return schema
}

// tidy takes out what package json does otherwise: it writes an empty list or object for nil, and leaves a nil
// pointer out.
func tidy(s Schema, open bool) {
	if s == nil {
		return
	}
	if slices.Contains(s.Types, "null") {
		s.Types = slices.DeleteFunc(s.Types, func(t string) bool { return t == "null" })
		if s.Ref == "" && len(s.Types) == 1 {
			s.Type = s.Types[0]
		}
		s.Types = nil
	}
	tidy(s.Items, open)
	for _, p := range s.Properties {
		tidy(p, open)
	}
	if open && len(s.Properties) > 0 {
		s.AdditionalProperties = nil
	} else if s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil {
		tidy(s.AdditionalProperties, open)
	}
}

// WithLimits writes the bounds of integers of 64 bits, which a double does not hold, to their last digit.
func WithLimits(document []byte) []byte {
	for _, limit := range [][2]string{{`"minimum":-9223372036854776000`, `"minimum":-9223372036854775808`},
		{`"maximum":9223372036854776000`, `"maximum":9223372036854775807`},
		{`"maximum":18446744073709552000`, `"maximum":18446744073709551615`}} {
		document = bytes.ReplaceAll(document, []byte(limit[0]), []byte(limit[1]))
	}
	return document
}
