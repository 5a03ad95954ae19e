package console

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// change is what is different at one place of two pieces of JSON.
type change struct {
	Pointer  string // RFC 6901
	Old, New string // as JSON; "" for nothing
}

// Bounds of what is shown of a difference.
const (
	maxChanges = 40
	maxValue   = 200 // bytes of a value
	maxDepth   = 32
)

// difference lists what has changed, and how many changes more there are. before is nil for nothing.
func difference(before, after jsontext.Value) (list []change, more int) {
	d := differ{}
	d.compare("", before, after, 0)
	return d.list, d.more
}

type differ struct {
	list []change
	more int
}

func (d *differ) compare(at string, before, after jsontext.Value, depth int) {
	switch {
	case bytes.Equal(before, after):
	case depth < maxDepth && isObject(after) && (len(before) == 0 || isObject(before)) && (depth > 0 || len(after) > 2):
		old, now := members(before), members(after)
		was, is := map[string]jsontext.Value{}, map[string]bool{}
		for _, o := range old {
			was[o.name] = o.value
		}
		for _, m := range now {
			is[m.name] = true
			d.compare(at+"/"+escapePointer(m.name), was[m.name], m.value, depth+1)
		}
		for _, o := range old {
			if !is[o.name] {
				d.add(at+"/"+escapePointer(o.name), o.value, nil)
			}
		}
	default:
		d.add(at, before, after)
	}
}

func isObject(v jsontext.Value) bool { return v.Kind() == '{' }

func (d *differ) add(at string, before, after jsontext.Value) {
	if len(d.list) == maxChanges {
		d.more++
		return
	}
	d.list = append(d.list, change{at, short(string(before), maxValue), short(string(after), maxValue)})
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(name string) string { return pointerEscapes.Replace(name) }

// member is one of an object's.
type member struct {
	name  string
	value jsontext.Value
}

// members returns the members of an object, in order; none for other values.
func members(v jsontext.Value) (list []member) {
	if !isObject(v) {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(v), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return nil
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return list
		}
		text := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return list
		}
		list = append(list, member{text, bytes.Clone(value)})
	}
	return list
}

// text is a JSON string as it is meant, and any other JSON as it is written.
func text(v jsontext.Value) string {
	if v.Kind() == '"' {
		if plain, err := jsontext.AppendUnquote(nil, v); err == nil {
			return string(plain)
		}
	}
	return string(v)
}
