package schemagen

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"time"

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

// apply writes the blocks into the schema. What follows an omitempty holds only
// for values that are not empty.
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
		return t.counted(c)
	}
	return nil, nil
}

// required refuses the zero value. Of what a nil can stand for, only null is
// zero, which the type refuses already.
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

func textual(c check) (*jsonschema.Schema, error) {
	switch c.name {
	case "min", "max", "gt", "gte", "lt", "lte", "len":
		low, high, err := limits(c)
		return &jsonschema.Schema{MinLength: low, MaxLength: high}, err
	case "eq":
		return constant(c.param), nil
	case "ne":
		return not(constant(c.param)), nil
	case "oneof":
		return &jsonschema.Schema{Enum: texts(c.param)}, nil
	case "noneof":
		return not(&jsonschema.Schema{Enum: texts(c.param)}), nil
	case "startswith":
		return pattern("^" + regexp.QuoteMeta(c.param)), nil
	case "endswith":
		return pattern(regexp.QuoteMeta(c.param) + "$"), nil
	case "contains":
		return pattern(regexp.QuoteMeta(c.param)), nil
	case "datetime":
		switch c.param {
		case time.RFC3339:
			return &jsonschema.Schema{Format: "date-time"}, nil
		case time.DateOnly:
			return &jsonschema.Schema{Format: "date"}, nil
		}
		return nil, nil
	}
	if s, ok := spellings[c.name]; ok {
		return &jsonschema.Schema{Pattern: s.pattern, Format: s.format}, nil
	}
	return nil, nil
}

func numeric(t reflect.Type, c check) (*jsonschema.Schema, error) {
	switch c.name {
	case "oneof", "noneof":
		s := &jsonschema.Schema{Enum: numbers(c.param)}
		if c.name == "noneof" {
			s = not(s)
		}
		return s, nil
	case "min", "max", "gt", "gte", "lt", "lte", "len", "eq", "ne":
	default:
		return nil, nil
	}
	n, exact, err := parameter(t, c.param)
	if err != nil || !exact {
		return nil, err
	}
	switch c.name {
	case "min", "gte":
		return &jsonschema.Schema{Minimum: &n}, nil
	case "max", "lte":
		return &jsonschema.Schema{Maximum: &n}, nil
	case "gt":
		return &jsonschema.Schema{ExclusiveMinimum: &n}, nil
	case "lt":
		return &jsonschema.Schema{ExclusiveMaximum: &n}, nil
	case "ne":
		return not(constant(n)), nil
	default:
		return constant(n), nil
	}
}

// parameter reads a number as the validator does for a field of type t. It is
// not exact when a double cannot hold it.
func parameter(t reflect.Type, param string) (n float64, exact bool, err error) {
	switch {
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		n, err = strconv.ParseFloat(param, t.Bits())
		return n, true, err
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uintptr:
		u, err := strconv.ParseUint(param, 0, 64)
		return float64(u), u <= 1<<53, err
	default:
		i, err := strconv.ParseInt(param, 0, 64)
		return float64(i), -1<<53 <= i && i <= 1<<53, err
	}
}

func (t *target) counted(c check) (*jsonschema.Schema, error) {
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

// limits are the smallest and the largest count that a check allows.
func limits(c check) (low, high *int, err error) {
	n64, err := strconv.ParseInt(c.param, 0, 32)
	if err != nil {
		return nil, nil, err
	}
	n := int(n64)
	switch c.name {
	case "min", "gte":
		low = &n
	case "max", "lte":
		high = &n
	case "gt":
		n++
		low = &n
	case "lt":
		n--
		high = &n
	default:
		low, high = &n, &n
	}
	if high != nil && *high < 0 {
		return nil, nil, fmt.Errorf("no value has a length of %d", *high)
	}
	if low != nil && *low <= 0 {
		low = nil
	}
	return low, high, nil
}

func texts(param string) []any {
	var values []any
	for _, v := range Choices(param) {
		if !slices.Contains(values, any(v)) {
			values = append(values, v)
		}
	}
	return values
}

// numbers are the choices that some integer is written as.
func numbers(param string) []any {
	values := []any{}
	for _, v := range Choices(param) {
		n, err := strconv.ParseInt(v, 10, 64)
		if err == nil && strconv.FormatInt(n, 10) == v && !slices.Contains(values, any(n)) {
			values = append(values, n)
		}
	}
	return values
}

func constant(v any) *jsonschema.Schema { return &jsonschema.Schema{Const: &v} }

func not(s *jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{Not: s} }

func pattern(p string) *jsonschema.Schema { return &jsonschema.Schema{Pattern: p} }
