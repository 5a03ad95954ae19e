package schemagen

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"
)

// zeros describes the values, other than null, that decode to a zero value:
// no others, or, if it is generous, others too where it does not know.
type zeros struct{ generous bool }

func (z zeros) unknown() *jsonschema.Schema {
	if z.generous {
		return anything()
	}
	return nothing()
}

func (z zeros) of(t reflect.Type, f form) *jsonschema.Schema {
	switch {
	case t.Kind() == reflect.Pointer || f == formAny:
		return nothing() // only null is zero
	case f == formBool:
		return constant(false)
	case f == formNumber:
		return constant(0)
	case f == formString:
		return constant("")
	case f == formObject:
		return z.object(t)
	case f == formText && !z.generous:
		return z.text(t)
	case f == formUnknown, f == formText, f == formQuoted, t.Kind() == reflect.Array:
		return z.unknown()
	default:
		return nothing() // an empty slice or map is not zero
	}
}

// text asks the type itself how it writes its zero value. There may be more ways to write it.
func (z zeros) text(t reflect.Type) *jsonschema.Schema {
	raw, err := json.Marshal(reflect.New(t).Interface())
	if err != nil {
		return nothing() // a type that cannot write its zero value has no text for it
	}
	var text string
	back := reflect.New(t)
	if json.Unmarshal(raw, &text) != nil || json.Unmarshal(raw, back.Interface()) != nil || !back.Elem().IsZero() {
		return nothing()
	}
	return constant(text)
}

func (z zeros) object(t reflect.Type) *jsonschema.Schema {
	members, rest := fieldsOf(t)
	s := &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: nothing(),
	}
	for _, m := range members {
		s.PropertyOrder = append(s.PropertyOrder, m.name)
		if len(m.pointers) > 0 {
			s.Properties[m.name] = nothing() // it makes the decoder allocate
			continue
		}
		f := formOf(m.typ, m.quoted)
		zero := z.of(m.typ, f)
		switch {
		case isFalse(zero) && f != formUnknown:
			zero = &jsonschema.Schema{Type: "null"}
		case !isFalse(zero):
			nullable(zero)
		}
		s.Properties[m.name] = zero
	}
	if rest != nil {
		s.AdditionalProperties = z.unknown()
	}
	return s
}

// probe asks the decoder whether it can fill struct t, and whether it knows the members.
func probe(t reflect.Type, members []field) error {
	var object []string
	for _, m := range members {
		if formOf(m.typ, false) == formUnknown {
			continue // its own code decides what a null is
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return err
		}
		object = append(object, string(name)+":null")
	}
	return decodes(t, "{"+strings.Join(object, ",")+"}")
}

// nilDecodes asks the decoder whether it can fill a t.
func nilDecodes(t reflect.Type) error { return decodes(t, "null") }

// decodes tries a document. The decoder panics on some types that it cannot fill: an embedded struct that is not exported, but has a name.
func decodes(t reflect.Type, document string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the decoder cannot fill %s: %v", t, p)
		}
	}()
	err = json.Unmarshal([]byte(document), reflect.New(t).Interface(), json.RejectUnknownMembers(true))
	e, ok := errors.AsType[*json.SemanticError](err)
	if !ok || e.GoType == nil {
		return err
	}
	reason := e.Err
	if reason == nil {
		reason = errors.New("it has no JSON form")
	}
	place := ""
	if name := e.JSONPointer.LastToken(); name != "" {
		place = "member " + name + ": "
	}
	return fmt.Errorf("%s%s: %w", place, e.GoType, reason)
}
