package unknown

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/pawlhq/pawl/internal/schemagen"
)

// Ambiguous reports that an array has changed such that it cannot be determined which of its elements own the unknown members: some were
// added or removed and others changed, or changed and moved, or they are equal to this build.
type Ambiguous struct{ Path string }

// Error says where.
func (e *Ambiguous) Error() string {
	return fmt.Sprintf("it is open which elements of %q were which: some have members that this build does not know, "+
		"and look alike without them, or were added, removed, moved or changed at once", e.Path)
}

// Encode encodes a value for comparison by Keep. It includes pointers that are not nil, even if their value is empty and `omitempty`
// therefore excludes it from the stored form.
func Encode(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsonv1.OmitEmptyWithLegacySemantics(true))
}

// Keep is what is to be stored of a changed value: written, which is its encoding, with what its type does not know of
// stored, the data as it was found. before is what the type read of that, by Encode, before the change.
// gone are the members that are not kept, as paths: RFC 6901, where "*" is every entry of a map or an
// array. written is returned as it is where there is nothing to keep, and never changed.
//
// Error: Ambiguous; that of malformed JSON, or of a value that cannot be encoded.
func Keep(changed any, stored, before, written []byte, gone map[string]bool) ([]byte, error) {
	after, err := Encode(changed)
	if err != nil {
		return nil, err
	}
	k := keeper{gone, map[reflect.Type]string{}}
	return k.value(reflect.TypeOf(changed), "", versions[jsontext.Value]{stored, before, after, written})
}

type keeper struct {
	gone   map[string]bool
	within map[reflect.Type]string // the types of which the place is a part, with their paths
}

// versions are those of one value.
type versions[V any] struct {
	stored  V
	before  V // what the type read of that, by Encode
	after   V // the same after the change
	written V // and as it is to be stored
}

// Path is the path of a member of what has a path.
func Path(parent, name string) string {
	return string(jsontext.Pointer(parent).AppendToken(name))
}

// none is an object without known members.
var none = jsontext.Value("{}")

// nothing returns a value without known members for one that is left out when it is written. An array of fixed length has its
// elements even then.
func nothing(t reflect.Type) jsontext.Value {
	if t.Kind() != reflect.Array {
		return none
	}
	elem := "null"
	if t.Elem().Kind() != reflect.Pointer {
		elem = string(nothing(t.Elem()))
	}
	return jsontext.Value("[" + strings.TrimSuffix(strings.Repeat(elem+",", t.Len()), ",") + "]")
}

// encoded encodes an object or an array. The members of an object are in the order of their names.
func encoded[V object | []jsontext.Value](v V) (jsontext.Value, error) {
	return json.Marshal(v, json.Deterministic(true))
}

func (k *keeper) value(t reflect.Type, path string, v versions[jsontext.Value]) (jsontext.Value, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	l := schemagen.LayoutOf(t)
	if l.Kind == schemagen.Whole || l.Encodes {
		return v.written, nil
	}
	if begins, inside := k.within[t]; inside { // the members of a type within itself have one path, as they are recorded
		path = begins
	} else {
		k.within[t] = path
		defer delete(k.within, t)
	}
	if l.Kind == schemagen.Array {
		return k.elements(t, path, v)
	}
	return k.members(&l, path, v)
}

// object is a JSON object.
type object = map[string]jsontext.Value

// decode reads all versions of a value. It reports false unless each has the kind.
func decode[V any](v versions[jsontext.Value], kind jsontext.Kind) (d versions[V], ok bool, err error) {
	for _, of := range []struct {
		to   *V
		from jsontext.Value
	}{{&d.stored, v.stored}, {&d.before, v.before}, {&d.after, v.after}, {&d.written, v.written}} {
		if of.from.Kind() != kind {
			return d, false, nil
		}
		if err := json.Unmarshal(of.from, of.to); err != nil {
			return d, false, err
		}
	}
	return d, true, nil
}

// member returns all versions of a member that is stored under one name and written under another.
func member(o *versions[object], stored, name string) versions[jsontext.Value] {
	return versions[jsontext.Value]{o.stored[stored], o.before[name], o.after[name], o.written[name]}
}

// members keeps the unknown members of a struct or of the entries of a map.
func (k *keeper) members(l *schemagen.Layout, path string, v versions[jsontext.Value]) (jsontext.Value, error) {
	o, ok, err := decode[object](v, '{')
	if !ok || err != nil {
		return v.written, err
	}
	changed := false
	for _, found := range slices.Sorted(maps.Keys(o.stored)) {
		name, t, known := l.Member(found)
		kept, at := o.stored[found], Path(path, name)
		switch {
		case !known && k.gone[at]:
			continue
		case known && t == nil && l.Elem == nil:
			continue
		case known && t == nil:
			if kept, err = k.entry(l.Elem, path, member(&o, found, name)); err != nil {
				return nil, err
			}
		case known:
			if kept, err = k.member(t, at, member(&o, found, name)); err != nil {
				return nil, err
			}
		}
		if kept == nil {
			continue
		}
		o.written[name] = kept
		changed = true
	}
	if !changed {
		return v.written, nil
	}
	return encoded(o.written)
}

// member is what a member is that the type knows, nil where that needs no change. One that is
// written as nothing is still there if it was written so before the change too, or cannot be
// taken away.
func (k *keeper) member(t reflect.Type, path string, v versions[jsontext.Value]) (jsontext.Value, error) {
	if v.after == nil && v.before != nil && t.Kind() == reflect.Pointer {
		return nil, nil
	}
	for _, version := range []*jsontext.Value{&v.before, &v.after, &v.written} {
		if *version == nil {
			*version = nothing(t)
		}
	}
	return k.replaced(t, path, v)
}

// entry is what an entry of a map is, nil where that needs no change.
func (k *keeper) entry(elem reflect.Type, path string, v versions[jsontext.Value]) (jsontext.Value, error) {
	if v.before == nil || v.after == nil {
		return nil, nil
	}
	return k.replaced(elem, path+"/*", v)
}

// replaced is value, but nil where that is what is written.
func (k *keeper) replaced(t reflect.Type, path string, v versions[jsontext.Value]) (jsontext.Value, error) {
	kept, err := k.value(t, path, v)
	if err != nil || bytes.Equal(kept, v.written) {
		return nil, err
	}
	return kept, nil
}
