package schemagen

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"
)

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
