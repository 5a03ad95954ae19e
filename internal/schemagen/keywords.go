package schemagen

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/go-playground/validator/v10"
	"github.com/google/jsonschema-go/jsonschema"
)

// target is a schema that rules are being written into.
type target struct {
	form    form
	typ     reflect.Type // without pointers
	pointer bool
	schema  *jsonschema.Schema
}

// apply writes the blocks into the schema. Rules after omitempty apply only to values that are not empty.
func (t *target) apply(blocks []block) error {
	for i, b := range blocks {
		if b.any(omitting) && t.omits(b) {
			rest := &target{t.form, t.typ, t.pointer, anything()}
			if err := rest.apply(blocks[i+1:]); err != nil {
				return err
			}
			t.exempt(rest.schema)
			return nil
		}
		if b.any(omitting) || b.any(skipping) || b.any(fieldRules) {
			continue
		}
		s, err := t.block(b)
		if err != nil {
			return fmt.Errorf("rule %q: %w", b.text, err)
		}
		conjoin(t.schema, s)
	}
	return nil
}

// omits reports whether the rule exempts values other than null. Null needs no
// words: keywords look at the type that they are made for.
func (t *target) omits(b block) bool {
	switch b.checks[0].name {
	case "omitempty":
		return !t.pointer && t.form != formArray && t.form != formMap && t.form != formAny
	case "omitzero":
		return t.form != formAny
	default:
		return false
	}
}

// exempt allows the zero value beside what rest allows.
func (t *target) exempt(rest *jsonschema.Schema) {
	var empty *jsonschema.Schema
	switch t.form {
	case formArray:
		empty = &jsonschema.Schema{MaxItems: jsonschema.Ptr(0)}
	case formMap:
		empty = &jsonschema.Schema{MaxProperties: jsonschema.Ptr(0)}
	default:
		empty = zeros{generous: true}.of(t.typ, t.form)
	}
	switch {
	case t.form == formObject && len(t.schema.Required) == 0: // what may be missing may be zero
	case t.form == formObject: // the rules of the fields are in the schema already
		full := *t.schema
		conjoin(&full, rest)
		*t.schema = jsonschema.Schema{AnyOf: []*jsonschema.Schema{empty, &full}}
	case isTrue(rest) || isTrue(empty):
	case onlyEnum(rest) && empty.Const != nil:
		conjoin(t.schema, &jsonschema.Schema{Enum: append(rest.Enum, *empty.Const)})
	default:
		conjoin(t.schema, &jsonschema.Schema{AnyOf: []*jsonschema.Schema{empty, rest}})
	}
}

// block says what one of the alternatives demands, nothing if one of them
// cannot be said.
func (t *target) block(b block) (*jsonschema.Schema, error) {
	var alternatives []*jsonschema.Schema
	for _, c := range b.checks {
		s, err := t.keyword(c)
		if err != nil || s == nil {
			return anything(), err
		}
		alternatives = append(alternatives, s)
	}
	if len(alternatives) == 1 {
		return alternatives[0], nil
	}
	return &jsonschema.Schema{AnyOf: alternatives}, nil
}

// keyword says what one check demands, or nil if JSON Schema has no word.
func (t *target) keyword(c check) (*jsonschema.Schema, error) {
	if implements[validator.Valuer](t.typ) {
		return nil, nil // the rules are on another value than the one in the JSON
	}
	if c.name == "required" {
		return t.required(), nil
	}
	switch t.form {
	case formBool:
		if v, err := strconv.ParseBool(c.param); err == nil && c.name == "eq" {
			return constant(v), nil
		}
	case formNumber:
		return numeric(t.typ, c)
	case formString:
		return textual(c)
	case formArray, formMap:
		switch c.name {
		case "min", "max", "gt", "gte", "lt", "lte", "len", "eq":
			low, high, err := limits(c)
			if t.form == formMap {
				return &jsonschema.Schema{MinProperties: low, MaxProperties: high}, err
			}
			return &jsonschema.Schema{MinItems: low, MaxItems: high}, err
		case "unique":
			if t.form == formArray && c.param == "" {
				return &jsonschema.Schema{UniqueItems: true}, nil
			}
		}
		return nil, nil
	}
	return nil, nil
}

// required refuses the zero value. For nillable types only null is zero, which the type refuses already.
func (t *target) required() *jsonschema.Schema {
	switch {
	case t.form == formAny:
		return &jsonschema.Schema{Not: &jsonschema.Schema{Type: "null"}}
	case t.pointer || t.typ.Kind() == reflect.Slice || t.form == formMap:
		return nil
	case t.form == formString:
		return &jsonschema.Schema{MinLength: jsonschema.Ptr(1)}
	case t.form == formBool:
		return constant(true)
	case t.form == formNumber:
		return not(constant(0))
	case t.form == formObject && len(t.schema.Required) > 0:
		return nil // a struct with a required field is not zero
	}
	if zero := (zeros{}).of(t.typ, t.form); !isFalse(zero) {
		return not(zero)
	}
	return nil
}
