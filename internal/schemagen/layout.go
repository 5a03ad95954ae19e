package schemagen

import (
	"encoding"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
)

// Layout describes the JSON of a type as far as other packages may depend on it.
type Layout struct {
	Kind    Kind
	Encodes bool              // the type encodes itself
	Elem    reflect.Type      // of a Map or an Array; of a Struct, of the members that an embedded map takes
	members map[string]field  // of a Struct
	anyCase map[string]string // the names of those that are known in any case, by the name folded
	rest    bool              // it takes all other members too
	keys    bool              // the keys of a Map are the names as they are
}

// Kind is a kind of Layout.
type Kind int

// The kinds. A value that is Whole has no parts that are known outside its type.
const (
	Whole Kind = iota
	Struct
	Map
	Array
)

var layouts sync.Map // reflect.Type → Layout

// LayoutOf returns the layout of a type. The type of a pointer is Whole; its element has a layout of its own.
func LayoutOf(t reflect.Type) Layout {
	if known, ok := layouts.Load(t); ok {
		return known.(Layout)
	}
	l := layoutOf(t)
	layouts.Store(t, l)
	return l
}

func layoutOf(t reflect.Type) Layout {
	if t.Kind() == reflect.Pointer {
		return Layout{}
	}
	encodes := implements[json.Marshaler](t) || implements[json.MarshalerTo](t) || implements[encoding.TextMarshaler](t)
	switch formOf(t, false) {
	case formMap:
		return Layout{Kind: Map, Encodes: encodes, Elem: t.Elem(), rest: true, keys: formOf(t.Key(), false) == formString}
	case formArray:
		return Layout{Kind: Array, Encodes: encodes, Elem: t.Elem()}
	case formObject:
	default:
		return Layout{}
	}
	fields, rest := fieldsOf(t)
	l := Layout{Kind: Struct, Encodes: encodes, members: map[string]field{}, anyCase: map[string]string{}, rest: rest != nil}
	if rest != nil && rest.Kind() == reflect.Map {
		l.Elem = rest.Elem()
	}
	for _, f := range fields {
		l.members[f.name] = f
		if f.anyCase {
			l.anyCase[folded(f.name)] = f.name
		}
	}
	return l
}

// Member is the name by which the type writes a member, and its type, which is nil where it is one of
// those that the type does not name, but takes. known: the type takes the member.
func (l *Layout) Member(name string) (own string, t reflect.Type, known bool) {
	if f, known := l.members[name]; known {
		return name, f.typ, true
	}
	if len(l.anyCase) > 0 {
		if own, known = l.anyCase[folded(name)]; known {
			return own, l.members[own].typ, true
		}
	}
	return name, nil, l.rest
}

// folded is a name as package json compares those that are known in any case.
func folded(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// Plain is the type of a member that is written as its type is. It is nil for a member that is quoted or in another format, and for one
// that the type does not name.
func (l *Layout) Plain(name string) reflect.Type {
	if l.keys {
		return l.Elem
	}
	if f := l.members[name]; !f.quoted && f.format == "" {
		return f.typ
	}
	return nil
}
