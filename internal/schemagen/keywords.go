package schemagen

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
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

// omits reports whether the rule exempts values other than null. Null needs no words: keywords look at the type that they are made for.
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

// block adds the alternatives of a rule, unless one cannot be expressed.
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

// keyword returns the schema of a check, or nil if JSON Schema cannot express it.
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

// conjoin adds the demands of more to s.
func conjoin(s, more *jsonschema.Schema) {
	s.Minimum, s.ExclusiveMinimum = larger(s.Minimum, more.Minimum), larger(s.ExclusiveMinimum, more.ExclusiveMinimum)
	s.Maximum, s.ExclusiveMaximum = smaller(s.Maximum, more.Maximum), smaller(s.ExclusiveMaximum, more.ExclusiveMaximum)
	s.MinLength, s.MaxLength = larger(s.MinLength, more.MinLength), smaller(s.MaxLength, more.MaxLength)
	s.MinItems, s.MaxItems = larger(s.MinItems, more.MinItems), smaller(s.MaxItems, more.MaxItems)
	s.MinProperties, s.MaxProperties = larger(s.MinProperties, more.MinProperties), smaller(s.MaxProperties, more.MaxProperties)
	s.UniqueItems = s.UniqueItems || more.UniqueItems
	s.AllOf = append(s.AllOf, more.AllOf...)

	// Of these a schema can hold one.
	once(s, &s.Pattern, more.Pattern, func(o *jsonschema.Schema) { o.Pattern = more.Pattern })
	once(s, &s.Format, more.Format, func(o *jsonschema.Schema) { o.Format = more.Format })
	once(s, &s.Enum, more.Enum, func(o *jsonschema.Schema) { o.Enum = more.Enum })
	once(s, &s.Const, more.Const, func(o *jsonschema.Schema) { o.Const = more.Const })
	once(s, &s.Not, more.Not, func(o *jsonschema.Schema) { o.Not = more.Not })
	once(s, &s.AnyOf, more.AnyOf, func(o *jsonschema.Schema) { o.AnyOf = more.AnyOf })
}

// once sets a keyword of s, or adds an allOf schema if s already has that keyword.
func once[T any](s *jsonschema.Schema, have *T, more T, set func(*jsonschema.Schema)) {
	switch {
	case reflect.ValueOf(&more).Elem().IsZero():
	case reflect.ValueOf(have).Elem().IsZero():
		*have = more
	default:
		beside := anything()
		set(beside)
		s.AllOf = append(s.AllOf, beside)
	}
}

func larger[N cmp.Ordered](a, b *N) *N {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func smaller[N cmp.Ordered](a, b *N) *N {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

func allowsZero(s *jsonschema.Schema) bool {
	switch {
	case s.Minimum != nil && *s.Minimum > 0, s.ExclusiveMinimum != nil && *s.ExclusiveMinimum >= 0:
		return false
	case s.Maximum != nil && *s.Maximum < 0, s.ExclusiveMaximum != nil && *s.ExclusiveMaximum <= 0:
		return false
	}
	return s.Enum == nil || slices.Contains(s.Enum, any(int64(0)))
}

// nullable makes s accept null. Keywords for one type let others pass; the type, enum and const name what they allow.
func nullable(s *jsonschema.Schema) {
	if s.Type != "" && s.Type != "null" {
		s.Types, s.Type = []string{s.Type, "null"}, ""
	}
	if s.Const != nil {
		s.Enum, s.Const = []any{*s.Const}, nil
	}
	if s.Enum != nil && !slices.Contains(s.Enum, nil) {
		s.Enum = append(slices.Clip(s.Enum), nil)
	}
	for _, alternatives := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf} {
		for _, a := range alternatives {
			nullable(a)
		}
	}
}

func isTrue(s *jsonschema.Schema) bool { return reflect.ValueOf(*s).IsZero() }

func isFalse(s *jsonschema.Schema) bool { return s.Not != nil && isTrue(s.Not) }

func onlyEnum(s *jsonschema.Schema) bool {
	return s.Enum != nil && reflect.DeepEqual(*s, jsonschema.Schema{Enum: s.Enum})
}
