package schemagen

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"
)

// form is how a Go type looks in JSON, as far as rules care.
type form int

const (
	formUnknown form = iota // the type decodes itself
	formAny
	formBool
	formNumber
	formQuoted // a number in a string
	formString
	formText // a string that means something else: a time, a UUID, bytes
	formArray
	formMap
	formObject
	formInvalid
)

func decodesItself(t reflect.Type) bool {
	return implements[json.Unmarshaler](t) || implements[json.UnmarshalerFrom](t) || implements[encoding.TextUnmarshaler](t)
}

func implements[I any](t reflect.Type) bool {
	i := reflect.TypeFor[I]()
	return t.Kind() != reflect.Interface && (t.Implements(i) || reflect.PointerTo(t).Implements(i))
}

func formOf(t reflect.Type, quoted bool) form {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return formText
	case implements[json.Unmarshaler](t) || implements[json.UnmarshalerFrom](t):
		return formUnknown
	case implements[encoding.TextUnmarshaler](t) || isBytes(t):
		return formText
	}
	switch t.Kind() {
	case reflect.Bool:
		return formBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64:
		if quoted {
			return formQuoted
		}
		return formNumber
	case reflect.String:
		return formString
	case reflect.Slice, reflect.Array:
		return formArray
	case reflect.Map:
		return formMap
	case reflect.Struct:
		return formObject
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return formAny
		}
	}
	return formInvalid
}

// isBytes reports whether package json writes t as base64.
func isBytes(t reflect.Type) bool {
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) &&
		t.Elem().Kind() == reflect.Uint8 && t.Elem().PkgPath() == ""
}

// shape describes the type at a place, without the rules on the value itself.
func (b *builder) shape(f form, t reflect.Type, at site) (*jsonschema.Schema, error) {
	if at.quoted && f != formQuoted && f != formText && f != formUnknown {
		return nil, fmt.Errorf("%s is not a number that could be written as a string", t)
	}
	switch f {
	case formUnknown, formAny:
		return anything(), nil
	case formBool, formNumber, formString:
		// Describe a truth value, a text or a number. A double does not hold the largest integers of 64 bits; see [Text].
		s, err := jsonschema.ForType(t, nil)
		if err != nil {
			return nil, err
		}
		switch t.Kind() {
		case reflect.Float32:
			s.Format = "float"
		case reflect.Int, reflect.Int64:
			s.Minimum, s.Maximum, s.Format = jsonschema.Ptr(-math.Ldexp(1, 63)), jsonschema.Ptr(math.Ldexp(1, 63)), "int64"
		case reflect.Uint, reflect.Uint64, reflect.Uintptr:
			s.Maximum, s.Format = jsonschema.Ptr(math.Ldexp(1, 64)), "uint64"
		}
		return s, nilDecodes(t)
	case formQuoted:
		return quoted(t), nilDecodes(t)
	case formText:
		return text(t), nil
	case formArray:
		items, err := b.entry(t, at)
		if err != nil {
			return nil, err
		}
		s := &jsonschema.Schema{Type: "array", Items: items}
		if t.Kind() == reflect.Array {
			s.MinItems, s.MaxItems = jsonschema.Ptr(t.Len()), jsonschema.Ptr(t.Len())
		}
		return s, nil
	case formMap:
		allowed, err := names(t)
		if err != nil {
			return nil, err
		}
		s := &jsonschema.Schema{Type: "object", PropertyNames: allowed}
		if s.AdditionalProperties, err = b.entry(t, at); err != nil {
			return nil, err
		}
		if at.checked && at.rules.keys != nil {
			if err := b.applyToKeys(s, t.Key(), at.rules.keys.blocks); err != nil {
				return nil, fmt.Errorf("keys: %w", err)
			}
		}
		return s, nil
	case formObject:
		return b.object(t, at.checked && !at.rules.skipsNested())
	default:
		return nil, fmt.Errorf("%s: it has no JSON form", t)
	}
}

// boundsOf64 are the bounds of 64 bits, as a double is written and as they are.
var boundsOf64 = strings.NewReplacer(
	`"minimum":-9223372036854776000`, `"minimum":-9223372036854775808`,
	`"maximum":9223372036854776000`, `"maximum":9223372036854775807`,
	`"maximum":18446744073709552000`, `"maximum":18446744073709551615`)

// Text encodes a schema, or a document that has schemas, with the bounds of 64 bits to their last digit.
func Text(document any) ([]byte, error) {
	text, err := json.Marshal(document, json.Deterministic(true))
	return []byte(boundsOf64.Replace(string(text))), err
}

const (
	integerText  = `^-?(?:0|[1-9][0-9]*)$`
	unsignedText = `^(?:0|[1-9][0-9]*)$`
	numberText   = `^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$`
	base64Text   = `^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`
)

func quoted(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string", Pattern: integerText}
	switch {
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		s.Pattern = numberText
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uintptr:
		s.Pattern = unsignedText
	}
	return s
}

func text(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	switch {
	case t == reflect.TypeFor[time.Time]():
		s.Format = "date-time"
	case t == reflect.TypeFor[uuid.UUID]():
		s.Format = "uuid"
	case implements[encoding.TextUnmarshaler](t):
	default:
		s.ContentEncoding, s.Pattern = "base64", base64Text
		if t.Kind() == reflect.Array {
			digits, padding := (8*t.Len()+5)/6, (3-t.Len()%3)%3
			s.Pattern = fmt.Sprintf(`^[A-Za-z0-9+/]{%d}%s$`, digits, strings.Repeat("=", padding))
		}
	}
	return s
}

// names describes the names of a map's members; nil for any string.
func names(t reflect.Type) (*jsonschema.Schema, error) {
	key := t.Key()
	switch form := formOf(key, false); {
	case form == formString:
		return nil, nil
	case form == formText && !isBytes(key):
		s := text(key)
		s.Type = "" // a name is always a string
		return s, nil
	case form == formNumber && key.Kind() < reflect.Uint:
		return pattern(integerText), nil
	case form == formNumber && key.Kind() <= reflect.Uintptr:
		return pattern(unsignedText), nil
	default:
		return nil, fmt.Errorf("%s has keys that are not strings", t)
	}
}

func (b *builder) applyToKeys(s *jsonschema.Schema, key reflect.Type, blocks []block) error {
	f := formOf(key, false)
	if err := b.try(f, key, blocks); err != nil || f != formString {
		return err
	}
	names := &target{form: f, typ: key, schema: anything()}
	err := names.apply(blocks)
	s.PropertyNames = names.schema
	return err
}

// entry describes the entries of an array or a map.
func (b *builder) entry(t reflect.Type, at site) (*jsonschema.Schema, error) {
	entry := site{typ: t.Elem()}
	if at.rules.dive {
		entry.checked, entry.rules = at.checked, *at.rules.elem
	}
	s, _, err := b.value(entry)
	return s, err
}
