package schemagen

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Stored lists the members of what is stored as a t, by path, each with its kind in words of our own that never change. A path is as in RFC
// 6901, where "*" is every entry of a map or an array, or every member that a struct does not name; "" is the whole. A type within itself
// has the kind "as " and the path where it begins.
//
// An error names a type within t that package json cannot write or read back, whatever its value.
func Stored(t reflect.Type) (map[string]string, error) {
	s := stored{kinds: map[string]string{}, within: map[reflect.Type]string{}}
	return s.kinds, s.add("", t, "")
}

type stored struct {
	kinds  map[string]string
	within map[reflect.Type]string // the types of which the place is a part, with their paths
}

func (s *stored) add(path string, t reflect.Type, prefix string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if at, inside := s.within[t]; inside {
		s.kinds[path] = "as " + at
		return nil
	}
	s.within[t] = path
	defer delete(s.within, t)
	switch formOf(t, false) {
	case formObject:
		s.kinds[path] = "object"
		return s.addMembers(path, t)
	case formMap:
		s.kinds[path] = "object"
		if t.Key().Kind() != reflect.String || implements[encoding.TextUnmarshaler](t.Key()) {
			s.kinds[path] = "object by " + Meaning(t.Key())
		}
		if _, err := names(t); err != nil {
			return err
		}
		return s.add(path+"/*", t.Elem(), "")
	case formArray:
		s.kinds[path] = "array"
		if t.Kind() == reflect.Array {
			s.kinds[path] = fmt.Sprintf("array of %d", t.Len())
		}
		return s.add(path+"/*", t.Elem(), "")
	case formInvalid:
		return fmt.Errorf("%s: it has no JSON form", t)
	case formUnknown, formText, formAny:
		s.kinds[path] = prefix + Meaning(t)
		return nil
	default:
		s.kinds[path] = prefix + Meaning(t)
		return nilDecodes(t)
	}
}

func (s *stored) addMembers(path string, t reflect.Type) error {
	members, rest := fieldsOf(t)
	if err := probe(t, members); err != nil {
		return err
	}
	for _, f := range members {
		prefix := ""
		if f.quoted {
			prefix = "quoted "
		}
		if f.format != "" {
			prefix += "in the format " + f.format + " "
		}
		if err := s.add(string(jsontext.Pointer(path).AppendToken(f.name)), f.typ, prefix); err != nil {
			return fmt.Errorf("field %s: %w", f.goField.Name, err)
		}
	}
	if rest == nil {
		return nil
	}
	values, err := additional(rest)
	if values == nil {
		s.kinds[path+"/*"] = "any"
		return err
	}
	return s.add(path+"/*", values, "")
}

// Unlike compares what is recorded of a type with another one: the members that the other type lacks, and those that it has and may not be
// able to read, each in a text for people. Of a member that is named its parts are not.
func Unlike(recorded, own map[string]string) (lacking, unreadable map[string]string) {
	lacking, unreadable = map[string]string{}, map[string]string{}
	var named []string
	all := map[string]string{}
	maps.Copy(all, own) // a member that the other type names may be recorded as one of those that have no name
	maps.Copy(all, recorded)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if slices.ContainsFunc(named, func(parent string) bool { return strings.HasPrefix(path, parent+"/") }) {
			continue
		}
		was, is := kindAt(recorded, path), kindAt(own, path)
		switch {
		case was == "":
			continue // new
		case is == "":
			lacking[path] = was
		case !reads(was, is):
			unreadable[path] = fmt.Sprintf("%s, now %s", was, is)
		default:
			continue
		}
		named = append(named, path)
	}
	return lacking, unreadable
}

// kindAt returns the kind of the member at a path, or "" if the type has none. A type that decodes itself has any member.
func kindAt(kinds map[string]string, path string) string {
	if !strings.HasPrefix(path, "/") && path != "" { // no member
		return kinds[path]
	}
	at := ""
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		kind := resolve(kinds, &at)
		if anything := kind == "any" || kind == "custom"; anything || path == "" {
			return kind
		}
		next := at + "/" + name
		if _, ok := kinds[next]; !ok {
			next = at + "/*"
		}
		if _, ok := kinds[next]; !ok {
			return ""
		}
		at = next
	}
	return resolve(kinds, &at)
}

// resolve returns the kind at the start of a recursive type.
func resolve(kinds map[string]string, at *string) string {
	if begins, within := strings.CutPrefix(kinds[*at], "as "); within {
		*at = begins
	}
	return kinds[*at]
}

// reads reports whether what is stored as one kind can always be read as another, and is written as it was. Of an object or an array
// the parts are for themselves.
func reads(was, is string) bool {
	switch {
	case was == is, is == "custom":
		return true
	case is == "any":
		return anyReads(was)
	case is == "string":
		return slices.Contains([]string{"time", "uuid", "text", "[]byte"}, was)
	case is == "object":
		return strings.HasPrefix(was, "object by ")
	case is == "array":
		return strings.HasPrefix(was, "array of ")
	case is == "float64":
		return smallInteger(was)
	}
	if wide := bits(is, "uint"); wide > 0 {
		return bits(was, "uint") > 0 && bits(was, "uint") <= wide
	}
	wide := bits(is, "int")
	return bits(was, "int") > 0 && bits(was, "int") <= wide || bits(was, "uint") > 0 && bits(was, "uint") < wide
}

// anyReads reports whether an any, whose numbers are float64, holds what is stored as a kind exactly. With float32 an older build
// would round what it is given of a newer one.
func anyReads(was string) bool {
	return slices.Contains([]string{"string", "time", "uuid", "text", "[]byte", "bool", "float64", "object", "array"}, was) ||
		strings.HasPrefix(was, "object by ") || strings.HasPrefix(was, "array of ") || smallInteger(was)
}

// smallInteger reports whether a float64 holds all integers of a kind.
func smallInteger(kind string) bool {
	n := bits(kind, "int") + bits(kind, "uint")
	return 0 < n && n <= 32
}

// bits is how many bits an integer of that kind has, 0 for another one.
func bits(kind, of string) (n int) {
	if rest, ok := strings.CutPrefix(kind, of); ok {
		_, _ = fmt.Sscan(rest, &n) // not a number: another kind
	}
	return n
}
