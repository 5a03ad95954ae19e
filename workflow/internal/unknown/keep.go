package unknown

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/workflow/internal/schemagen"
)

// Ambiguous says that an array has changed in such a way that nobody can tell to which of its
// elements the unknown members belong.
type Ambiguous struct{ Path string }

// Error says where.
func (e *Ambiguous) Error() string {
	return fmt.Sprintf("elements of %q were added, removed and changed at once, and some have members that this build does not know", e.Path)
}

// Keep is after with what type t does not know of stored. All are JSON: stored is the data as it
// was found, before is what t reads of it, encoded again, and after the same after the change.
// gone are the members that are not kept, as paths: RFC 6901, where "*" is every entry of a map or an
// array. after is returned as it is where there is nothing to keep, and never changed.
//
// Error: Ambiguous; that of malformed JSON.
func Keep(t reflect.Type, stored, before, after []byte, gone map[string]bool) ([]byte, error) {
	k := keeper{gone}
	return k.value(t, "", stored, before, after)
}

type keeper struct{ gone map[string]bool }

// Path is the path of a member of what has a path.
func Path(parent, name string) string {
	return string(jsontext.Pointer(parent).AppendToken(name))
}

// none is an object of which nothing is known.
var none = jsontext.Value("{}")

// nothing is a value of which nothing is known, in the place of one that is written as nothing: an
// array of fixed length has its elements all the same.
func nothing(t reflect.Type) jsontext.Value {
	if t.Kind() != reflect.Array {
		return none
	}
	elem := jsontext.Value("null")
	if t.Elem().Kind() != reflect.Pointer {
		elem = nothing(t.Elem())
	}
	return encodeArray(slices.Repeat([]jsontext.Value{elem}, t.Len()))
}

func (k *keeper) value(t reflect.Type, path string, stored, before, after jsontext.Value) (jsontext.Value, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch l := schemagen.LayoutOf(t); l.Kind {
	case schemagen.Struct:
		return k.members(&l, path, stored, before, after)
	case schemagen.Map:
		return k.entries(l.Elem, path, stored, before, after)
	case schemagen.Array:
		return k.elements(l.Elem, path, stored, before, after)
	default:
		return after, nil
	}
}

// objects reads the three; false: they are not all objects.
func objects(stored, before, after jsontext.Value) (was, read, is *object, ok bool, err error) {
	if was, err = objectOf(stored); err != nil {
		return nil, nil, nil, false, err
	}
	if read, err = objectOf(before); err != nil {
		return nil, nil, nil, false, err
	}
	is, err = objectOf(after)
	return was, read, is, was != nil && read != nil && is != nil, err
}

func (k *keeper) members(l *schemagen.Layout, path string, stored, before, after jsontext.Value) (jsontext.Value, error) {
	was, read, is, ok, err := objects(stored, before, after)
	if !ok || err != nil {
		return after, err
	}
	changed := false
	for i, found := range was.names {
		name, t, known := l.Member(found)
		kept, at := was.values[i], Path(path, name)
		switch {
		case !known && k.gone[at]:
			continue
		case known && t == nil && l.Elem == nil:
			continue
		case known && t == nil:
			if kept, err = k.entry(l.Elem, path, kept, read.get(name), is.get(name)); err != nil {
				return nil, err
			}
		case known:
			if kept, err = k.member(t, at, kept, read.get(name), is.get(name)); err != nil {
				return nil, err
			}
		}
		if kept == nil {
			continue
		}
		is.set(name, kept)
		changed = true
	}
	if !changed {
		return after, nil
	}
	return is.encode()
}

// member is what a member is that the type knows, nil where that needs no change. One that is
// written as nothing is still there if it was written so before the change too, or cannot be
// taken away.
func (k *keeper) member(t reflect.Type, path string, stored, before, after jsontext.Value) (jsontext.Value, error) {
	if after == nil {
		if before != nil && t.Kind() == reflect.Pointer {
			return nil, nil
		}
		before, after = nothing(t), nothing(t)
	}
	if before == nil {
		before = nothing(t)
	}
	return k.replaced(t, path, stored, before, after)
}

// entry is what an entry of a map is, nil where that needs no change.
func (k *keeper) entry(elem reflect.Type, path string, stored, before, after jsontext.Value) (jsontext.Value, error) {
	if before == nil || after == nil {
		return nil, nil
	}
	return k.replaced(elem, path+"/*", stored, before, after)
}

// replaced is value, but nil where that is after.
func (k *keeper) replaced(t reflect.Type, path string, stored, before, after jsontext.Value) (jsontext.Value, error) {
	kept, err := k.value(t, path, stored, before, after)
	if err != nil || bytes.Equal(kept, after) {
		return nil, err
	}
	return kept, nil
}

func (k *keeper) entries(elem reflect.Type, path string, stored, before, after jsontext.Value) (jsontext.Value, error) {
	was, read, is, ok, err := objects(stored, before, after)
	if !ok || err != nil {
		return after, err
	}
	changed := false
	for i, key := range was.names {
		kept, err := k.entry(elem, path, was.values[i], read.get(key), is.get(key))
		if err != nil {
			return nil, err
		}
		if kept != nil {
			is.set(key, kept)
			changed = true
		}
	}
	if !changed {
		return after, nil
	}
	return is.encode()
}
