package schemagen

import (
	"encoding"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
)

// Layout is what a value of a type consists of in JSON, as far as others may look into it.
type Layout struct {
	Kind    Kind
	Elem    reflect.Type            // of a Map or an Array; of a Struct, of the members that an embedded map takes
	members map[string]reflect.Type // of a Struct
	anyCase map[string]string       // the names of those that are known in any case, by the name folded
	rest    bool                    // it takes all other members too
}

// Kind is a kind of Layout.
type Kind int

// The kinds. What is Whole has no parts that anybody else knows of.
const (
	Whole Kind = iota
	Struct
	Map
	Array
)

var layouts sync.Map // reflect.Type → Layout

// LayoutOf is the layout of a type. What a pointer leads to is its own; the type of a pointer
// itself is Whole.
func LayoutOf(t reflect.Type) Layout {
	if known, ok := layouts.Load(t); ok {
		return known.(Layout)
	}
	l := layoutOf(t)
	layouts.Store(t, l)
	return l
}

func layoutOf(t reflect.Type) Layout {
	if t.Kind() == reflect.Pointer || encodesItself(t) {
		return Layout{}
	}
	switch formOf(t, false) {
	case formMap:
		return Layout{Kind: Map, Elem: t.Elem(), rest: true}
	case formArray:
		return Layout{Kind: Array, Elem: t.Elem()}
	case formObject:
	default:
		return Layout{}
	}
	fields, rest := fieldsOf(t)
	l := Layout{Kind: Struct, members: map[string]reflect.Type{}, anyCase: map[string]string{}, rest: rest != nil}
	if rest != nil && rest.Kind() == reflect.Map {
		l.Elem = rest.Elem()
	}
	for _, f := range fields {
		l.members[f.name] = f.typ
		if f.anyCase {
			l.anyCase[folded(f.name)] = f.name
		}
	}
	return l
}

// Member is the name by which the type writes a member, and its type, which is nil where it is one of
// those that the type does not name, but takes. known: the type takes the member.
func (l *Layout) Member(name string) (own string, t reflect.Type, known bool) {
	if t, known = l.members[name]; known {
		return name, t, true
	}
	if len(l.anyCase) > 0 {
		if own, known = l.anyCase[folded(name)]; known {
			return own, l.members[own], true
		}
	}
	return name, nil, l.rest
}

// folded is a name as package json compares those that are known in any case.
func folded(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

func encodesItself(t reflect.Type) bool {
	return implements[json.Marshaler](t) || implements[json.MarshalerTo](t) || implements[encoding.TextMarshaler](t)
}
