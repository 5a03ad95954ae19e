// Package schemagen describes in JSON Schema the values that the decoder of a payload accepts: the JSON form of a Go type, as package json
// reads it, under the rules of its validate tags, as package validator applies them.
//
// The decoder treats a missing field, null and the zero value alike. A field whose rules reject the zero value is required; others may be
// missing or null.
//
// A schema is never stricter than the decoder, and exactly as strict except for the limits of JSON Schema:
//   - rules between fields (required_with, eqfield) and rules without a keyword (luhn_checksum) are left out;
//   - most validators ignore "format", and 64-bit integers have a format instead of bounds that a double cannot represent;
//   - 1.0 and 1e2 are integers in JSON Schema, and for the decoder only in canonical form, as 1 and 100.
//
// Types that package json cannot fill, rules that do not fit their field, and rules that read the clock, the disk or the network are
// errors.
//
// [Components] describes the values of the HTTP API by the same rules, without validate tags.
package schemagen

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-playground/validator/v10"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"
)

// Draft names the version of JSON Schema that the schemas are written in.
const Draft = "https://json-schema.org/draft/2020-12/schema"

// Of returns the schema of the JSON objects that decode into struct t and that v then finds valid. It tries v's rules once on zero values.
func Of(t reflect.Type, v *validator.Validate) (*jsonschema.Schema, error) {
	if t.Kind() != reflect.Struct || decodesItself(t) {
		return nil, errors.New("it must be a struct that is decoded field by field")
	}
	b := &builder{validate: v}
	s, err := b.object(t, true)
	if err != nil {
		return nil, err
	}
	if _, err := b.valid(t, ""); err != nil { // for the rules between fields
		return nil, err
	}
	s.Schema = Draft
	return s, nil
}

type builder struct {
	validate   *validator.Validate
	components *Components    // nil for a payload
	open       bool           // components allow unknown members
	path       []reflect.Type // of structs, from the outermost in
}

// site is a position of a value of a type, with the validator's rules for that position, if the validator reaches it.
type site struct {
	typ     reflect.Type
	rules   rules
	checked bool
	quoted  bool
}

// object describes a struct. Its fields are checked if the validator gets here.
func (b *builder) object(t reflect.Type, checked bool) (*jsonschema.Schema, error) {
	if slices.Contains(b.path, t) {
		return nil, fmt.Errorf("%s contains itself", t)
	}
	b.path = append(b.path, t)
	defer func() { b.path = b.path[:len(b.path)-1] }()

	members, rest := fieldsOf(t)
	if err := probe(t, members); err != nil {
		return nil, err
	}
	s := &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{},
		AdditionalProperties: nothing(),
	}
	var required []field
	for _, f := range members {
		value, optional, err := b.member(&f, checked)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.goField.Name, err)
		}
		value.Description = cmp.Or(f.goField.Tag.Get("jsonschema"), value.Description)
		s.Properties[f.name] = value
		s.PropertyOrder = append(s.PropertyOrder, f.name)
		if !optional {
			required = append(required, f)
		}
	}
	// Write which members must be there: always, or with those that make the decoder allocate the embedded pointer that both are in.
	for _, r := range required {
		if len(r.pointers) == 0 {
			s.Required = append(s.Required, r.name)
			continue
		}
		for _, m := range members {
			if m.name == r.name || !containsAll(m.pointers, r.pointers) {
				continue
			}
			if s.DependentRequired == nil {
				s.DependentRequired = map[string][]string{}
			}
			s.DependentRequired[m.name] = append(s.DependentRequired[m.name], r.name)
		}
	}
	var err error
	switch {
	case rest != nil:
		s.AdditionalProperties, err = b.additional(rest)
	case b.open && len(members) > 0:
		s.AdditionalProperties = nil
	}
	return s, err
}

// member describes a field of a struct, and whether it may be missing.
func (b *builder) member(f *field, checked bool) (s *jsonschema.Schema, optional bool, err error) {
	if f.anyCase {
		return nil, false, errors.New("no schema can say that its name may have any case")
	}
	at := site{typ: f.typ, quoted: f.quoted}
	if checked && !f.skipped && f.rules != "-" {
		at.checked, at.rules = true, parseRules(f.rules)
	}
	s, optional, err = b.value(at)
	if b.components != nil {
		_, options, _ := strings.Cut(f.goField.Tag.Get("json"), ",")
		optional = hasOption(options, "omitempty") || hasOption(options, "omitzero")
	}
	return s, optional, err
}

func containsAll(set, subset []string) bool {
	for _, s := range subset {
		if !slices.Contains(set, s) {
			return false
		}
	}
	return true
}

func (b *builder) additional(rest reflect.Type) (*jsonschema.Schema, error) {
	t, err := additional(rest)
	if err != nil || t == nil {
		return anything(), err
	}
	s, _, err := b.value(site{typ: t})
	return s, err
}

// value describes a value, and reports whether it may be missing or null.
func (b *builder) value(at site) (s *jsonschema.Schema, optional bool, err error) {
	inner := at.typ
	for inner.Kind() == reflect.Pointer {
		inner = inner.Elem()
	}
	if b.components != nil {
		if s, err = b.components.known(inner, b.open); s != nil || err != nil {
			return s, false, err
		}
	}
	form := formOf(inner, at.quoted)
	s, err = b.shape(form, inner, at)
	if err != nil || b.components != nil {
		return s, false, err
	}
	if !at.checked {
		nullable(s)
		return s, true, nil
	}
	if err := b.try(form, inner, at.rules.blocks); err != nil {
		return nil, false, err
	}
	target := &target{form: form, typ: inner, pointer: inner != at.typ, schema: s}
	if err := target.apply(at.rules.blocks); err != nil {
		return nil, false, err
	}
	// Drop redundant keywords.
	if s.ExclusiveMinimum != nil && s.Minimum != nil {
		if *s.ExclusiveMinimum >= *s.Minimum {
			s.Minimum = nil
		} else {
			s.ExclusiveMinimum = nil
		}
	}
	if s.ExclusiveMaximum != nil && s.Maximum != nil {
		if *s.ExclusiveMaximum <= *s.Maximum {
			s.Maximum = nil
		} else {
			s.ExclusiveMaximum = nil
		}
	}
	if s.Not != nil && s.Not.Const != nil && *s.Not.Const == 0 && !allowsZero(s) {
		s.Not = nil
	}
	if s.Enum != nil && s.MinLength != nil && *s.MinLength == 1 && !slices.Contains(s.Enum, any("")) {
		s.MinLength = nil
	}
	optional, err = b.acceptsZero(at.typ, at.rules)
	if optional {
		nullable(s)
	}
	return s, optional, err
}

// anything is the schema of every value.
func anything() *jsonschema.Schema { return &jsonschema.Schema{} }

// nothing is the schema of no value.
func nothing() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// Components describes the Go types that a program of its own reads and writes, for documents such as OpenAPI's. A struct of
// its module is a component, by the name of its type, and other schemas refer to it. Validate tags are ignored. A member is
// required unless package json may leave it out, and null is not a value.
type Components struct {
	Named map[string]*jsonschema.Schema

	module, at string
	types      map[string]reflect.Type
	fixed      map[reflect.Type]*jsonschema.Schema
}

// NewComponents returns an empty set for the types of a module. References begin with at, such as "#/components/schemas/".
// The schema of a type in fixed is used as it is.
func NewComponents(module, at string, fixed map[reflect.Type]*jsonschema.Schema) *Components {
	c := &Components{Named: map[string]*jsonschema.Schema{}, module: module, at: at, types: map[string]reflect.Type{},
		fixed: map[reflect.Type]*jsonschema.Schema{
			reflect.TypeFor[jsontext.Value](): {Description: "any JSON"},
			reflect.TypeFor[time.Time]():      {Type: "string", Format: "date-time"},
			reflect.TypeFor[uuid.UUID]():      {Type: "string", Format: "uuid"},
		}}
	maps.Copy(c.fixed, fixed)
	return c
}

// Answer returns the schema of a value that is written. Later releases may add members, so unknown members are allowed.
func (c *Components) Answer(t reflect.Type) *jsonschema.Schema { return c.of(t, true) }

// Request returns the schema of a value that is read. Unknown members are refused.
func (c *Components) Request(t reflect.Type) *jsonschema.Schema { return c.of(t, false) }

// Ref refers to a component.
func (c *Components) Ref(name string) *jsonschema.Schema { return &jsonschema.Schema{Ref: c.at + name} }

func (c *Components) of(t reflect.Type, open bool) *jsonschema.Schema {
	b := &builder{components: c, open: open}
	s, _, err := b.value(site{typ: t})
	if err != nil {
		panic(fmt.Sprintf("schemagen: %s: %v", t, err))
	}
	return s
}

// known returns the schema of a type that is fixed, or a reference to a component. Two structs with one name are an error.
func (c *Components) known(t reflect.Type, open bool) (*jsonschema.Schema, error) {
	if s := c.fixed[t]; s != nil {
		return s.CloneSchemas(), nil
	}
	if t.Kind() != reflect.Struct || !strings.HasPrefix(t.PkgPath(), c.module) {
		return nil, nil
	}
	switch c.types[t.Name()] {
	case t:
		return c.Ref(t.Name()), nil
	case nil:
		c.types[t.Name()] = t
		s, err := (&builder{components: c, open: open}).object(t, false)
		c.Named[t.Name()] = s
		return c.Ref(t.Name()), err
	default:
		return nil, fmt.Errorf("%s and %s have one name", c.types[t.Name()], t)
	}
}
