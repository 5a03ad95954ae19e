package schemagen

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// field is a member of the JSON object that a struct decodes from.
type field struct {
	name     string
	named    bool // by a tag
	typ      reflect.Type
	goField  reflect.StructField
	index    []int
	quoted   bool     // a number written as a string
	format   string   // from the tag
	anyCase  bool     // known by its name in any case
	rules    string   // the validate tag
	skipped  bool     // inside an embedded struct that the validator skips
	pointers []string // the embedded pointers that are allocated when the field is present
	again    bool     // an embedded struct of a type that is embedded elsewhere too
}

// JSONName returns the name of a struct field in JSON. It is "" for an embedded struct whose fields are inlined.
func JSONName(f reflect.StructField) string {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if embedded(f, name, options) {
		return ""
	}
	return cmp.Or(name, f.Name)
}

func embedded(f reflect.StructField, name, options string) bool {
	return f.Anonymous && name == "" || hasOption(options, "embed")
}

func hasOption(options, option string) bool {
	return slices.Contains(strings.Split(options, ","), option)
}

// fieldsOf lists the members of struct t in order, those of embedded structs among them, and the embedded map or raw value that takes all
// other members, if there is one. Of several fields with one name the shallowest wins, then the one that a tag names; otherwise none does.
// Of several that take all others the shallowest wins; of two in one depth none does.
func fieldsOf(t reflect.Type) (members []field, rest reflect.Type) {
	var all, rests []field
	queue := []field{{typ: t}}
	seen := map[reflect.Type]bool{t: true}
	for len(queue) > 0 {
		parent := queue[0]
		queue = queue[1:]
		for i := range parent.typ.NumField() {
			f, embedded, is := parent.member(i)
			if !is {
				continue
			}
			if !embedded {
				all = append(all, f)
				continue
			}
			inner := f.typ
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
				f.pointers = append(slices.Clone(f.pointers), fmt.Sprint(f.index))
			}
			f.typ = inner
			if inner.Kind() != reflect.Struct {
				rests = append(rests, f)
				continue
			}
			if parent.again {
				continue
			}
			f.again = seen[inner] // its fields are there twice, as package json has it
			seen[inner] = true
			f.skipped = f.skipped || parseRules(f.rules).skipsNested()
			queue = append(queue, f)
		}
	}
	if n := len(rests); n == 1 || n > 1 && len(rests[0].index) != len(rests[1].index) {
		rest = rests[0].typ
	}
	return dominant(all), rest
}

// member is a field of the parent's struct, and whether its members are those of the parent. is: it is one for JSON.
func (parent *field) member(i int) (f field, isEmbedded, is bool) {
	sf := parent.typ.Field(i)
	tag := sf.Tag.Get("json")
	name, options, _ := strings.Cut(tag, ",")
	_, format, _ := strings.Cut(tag, ",format:")
	if tag == "-" || !sf.IsExported() && !sf.Anonymous {
		return f, false, false
	}
	return field{
		name: cmp.Or(name, sf.Name), named: name != "", typ: sf.Type, goField: sf,
		index:  append(slices.Clone(parent.index), i),
		format: format, quoted: hasOption(options, "string"), anyCase: hasOption(options, "case:ignore"),
		rules:   sf.Tag.Get("validate"),
		skipped: parent.skipped, pointers: parent.pointers,
	}, embedded(sf, name, options), true
}

func dominant(all []field) []field {
	slices.SortStableFunc(all, func(a, b field) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(len(a.index), len(b.index)), untaggedLast(a, b))
	})
	var members []field
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].name == all[0].name {
			n++
		}
		if n == 1 || len(all[0].index) != len(all[1].index) || all[0].named != all[1].named {
			members = append(members, all[0])
		}
		all = all[n:]
	}
	slices.SortFunc(members, func(a, b field) int { return slices.Compare(a.index, b.index) })
	return members
}

func untaggedLast(a, b field) int {
	switch {
	case a.named == b.named:
		return 0
	case a.named:
		return -1
	default:
		return 1
	}
}

// additional is the type of the members that no field names: of the values of
// an embedded map, or nil for an embedded raw value, which takes anything.
func additional(rest reflect.Type) (reflect.Type, error) {
	switch {
	case rest == reflect.TypeFor[jsontext.Value]():
		return nil, nil
	case rest.Kind() == reflect.Map && rest.Key().Kind() == reflect.String:
		return rest.Elem(), nil
	default:
		return nil, fmt.Errorf("%s cannot take the other members of an object", rest)
	}
}
