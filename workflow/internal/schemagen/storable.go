package schemagen

import (
	"fmt"
	"reflect"
)

// Storable reports, as an error, a type within t that package json cannot
// write or read back, whatever its value. Types that contain themselves are
// fine: data may be as deep as it likes.
func Storable(t reflect.Type) error { return storable(t, map[reflect.Type]bool{}) }

func storable(t reflect.Type, seen map[reflect.Type]bool) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if seen[t] {
		return nil
	}
	seen[t] = true
	switch formOf(t, false) {
	case formUnknown, formText, formAny:
		return nil
	case formInvalid:
		return fmt.Errorf("%s: it has no JSON form", t)
	case formObject:
		return storableStruct(t, seen)
	case formMap:
		if _, err := names(t); err != nil {
			return err
		}
		return storable(t.Elem(), seen)
	case formArray:
		return storable(t.Elem(), seen)
	default:
		return nilDecodes(t)
	}
}

func storableStruct(t reflect.Type, seen map[reflect.Type]bool) error {
	members, rest := fieldsOf(t)
	if err := probe(t, members); err != nil {
		return err
	}
	for _, m := range members {
		if err := storable(m.typ, seen); err != nil {
			return fmt.Errorf("field %s: %w", m.goField.Name, err)
		}
	}
	if rest == nil {
		return nil
	}
	values, err := additional(rest)
	if err != nil || values == nil {
		return err
	}
	return storable(values, seen)
}
