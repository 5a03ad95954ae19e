package schemagen

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Meaning returns a description of how t is decoded and checked, for definition hashes. It changes with the type and not with the format of
// schemas: for each member, in the order of names, its name, type, and the rules of its tag. A type with its own decoder is opaque.
// Descriptions of fields and names of Go types are not included. t must be a type, or a part of one, that Of or Stored accepts.
func Meaning(t reflect.Type) string {
	var b strings.Builder
	meaning(&b, t)
	return b.String()
}

func meaning(b *strings.Builder, t reflect.Type) {
	for ; t.Kind() == reflect.Pointer; t = t.Elem() {
		b.WriteByte('*')
	}
	switch formOf(t, false) {
	case formObject:
		members, rest := fieldsOf(t)
		slices.SortFunc(members, func(x, y field) int { return strings.Compare(x.name, y.name) })
		b.WriteByte('{')
		for _, f := range members {
			fmt.Fprintf(b, "%q%s ", f.name, strings.Repeat("?", len(f.pointers)))
			meaning(b, f.typ)
			if f.quoted {
				b.WriteString(" quoted")
			}
			if f.rules != "" && !f.skipped {
				fmt.Fprintf(b, " rules %q", f.rules)
			}
			b.WriteByte(';')
		}
		if rest != nil {
			b.WriteString("...")
			meaning(b, rest)
		}
		b.WriteByte('}')
	case formMap:
		b.WriteString("map[")
		meaning(b, t.Key())
		b.WriteByte(']')
		meaning(b, t.Elem())
	case formArray:
		b.WriteString(length(t))
		meaning(b, t.Elem())
	case formUnknown:
		b.WriteString("custom")
	case formText:
		b.WriteString(textMeaning(t))
	case formAny:
		b.WriteString("any")
	default:
		k := t.Kind()
		switch k {
		case reflect.Int:
			k = reflect.Int64
		case reflect.Uint, reflect.Uintptr:
			k = reflect.Uint64
		}
		b.WriteString(k.String())
	}
}

// length is "[]", or "[N]" of an array.
func length(t reflect.Type) string {
	if t.Kind() == reflect.Array {
		return fmt.Sprintf("[%d]", t.Len())
	}
	return "[]"
}

func textMeaning(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t == reflect.TypeFor[uuid.UUID]():
		return "uuid"
	case implements[encoding.TextUnmarshaler](t):
		return "text"
	}
	return length(t) + "byte"
}
