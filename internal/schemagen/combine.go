package schemagen

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// conjoin makes s demand what more demands, too.
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

// nullable lets s accept null, too. Keywords for one type let others pass; the
// type, enum and const name what they allow.
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
