package unknown

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// node is a type in the making.
type node struct {
	kind   reflect.Kind // Int, String, Struct, Pointer, Slice, Array (of two) or Map
	fields []field      // of a Struct
	elem   *node        // of the last four
}

type field struct {
	name, options string
	node          *node
}

// embed is of a field that takes the members which no other does.
const embed = ",embed"

func randomStruct(r *rand.Rand, depth int) *node {
	n := &node{kind: reflect.Struct}
	for i := range 1 + r.IntN(4) {
		n.fields = append(n.fields, field{fmt.Sprintf("f%d", i), []string{"", ",omitzero", ",omitempty"}[r.IntN(3)], randomNode(r, depth-1)})
	}
	if r.IntN(4) == 0 {
		n.fields = append(n.fields, field{"", embed, &node{kind: reflect.Map, elem: randomNode(r, depth-1)}})
	}
	return n
}

func randomNode(r *rand.Rand, depth int) *node {
	if depth <= 0 || r.IntN(3) == 0 {
		return &node{kind: []reflect.Kind{reflect.Int, reflect.String}[r.IntN(2)]}
	}
	switch kind := []reflect.Kind{reflect.Struct, reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}[r.IntN(5)]; kind {
	case reflect.Struct:
		return randomStruct(r, depth)
	default:
		return &node{kind: kind, elem: randomNode(r, depth)}
	}
}

// structs lists the structs of a type.
func (n *node) structs() (list []*node) {
	if n.kind == reflect.Struct {
		list = append(list, n)
	}
	for _, f := range n.fields {
		list = append(list, f.node.structs()...)
	}
	if n.elem != nil {
		list = append(list, n.elem.structs()...)
	}
	return list
}

// typ is the type without one field.
func (n *node) typ(without *field) reflect.Type {
	switch n.kind {
	case reflect.Int:
		return reflect.TypeFor[int64]()
	case reflect.String:
		return reflect.TypeFor[string]()
	case reflect.Pointer:
		return reflect.PointerTo(n.elem.typ(without))
	case reflect.Slice:
		return reflect.SliceOf(n.elem.typ(without))
	case reflect.Array:
		return reflect.ArrayOf(2, n.elem.typ(without))
	case reflect.Map:
		return reflect.MapOf(reflect.TypeFor[string](), n.elem.typ(without))
	}
	var fields []reflect.StructField
	for i := range n.fields {
		if f := &n.fields[i]; f != without {
			fields = append(fields, reflect.StructField{Name: "F" + f.name, Type: f.node.typ(without),
				Tag: reflect.StructTag(fmt.Sprintf(`json:%q`, f.name+f.options))})
		}
	}
	return reflect.StructOf(fields)
}

// fill sets a value at random. Zero is frequent, because it may be written as nothing.
func fill(r *rand.Rand, v reflect.Value) {
	if r.IntN(5) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Int64:
		v.SetInt(r.Int64())
	case reflect.String:
		v.SetString(fmt.Sprint(r.Uint64()))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+r.IntN(3), 4))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range 1 + r.IntN(3) {
			elem := reflect.New(v.Type().Elem()).Elem()
			fill(r, elem)
			v.SetMapIndex(reflect.ValueOf(fmt.Sprint("k", i)), elem)
		}
	}
}

// change gives some of the numbers and texts another value, where they are.
func change(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Int64, reflect.String:
		if r.IntN(3) == 0 {
			fill(r, v)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			change(r, v.Field(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			change(r, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			change(r, v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			elem := reflect.New(v.Type().Elem()).Elem()
			elem.Set(v.MapIndex(key))
			change(r, elem)
			v.SetMapIndex(key, elem)
		}
	}
}

// others are the members that none of the fields has by its name.
func others(members map[string]any, fields []field) map[string]any {
	list := maps.Clone(members)
	for _, f := range fields {
		delete(list, f.name)
	}
	return list
}

// unknownIn lists what the data has at the place of the field, wherever that is, in some order.
func unknownIn(n *node, without *field, v any) (list []string) {
	switch at := v.(type) {
	case map[string]any:
		if n.kind == reflect.Pointer {
			return unknownIn(n.elem, without, v)
		}
		for i := range n.fields {
			f := &n.fields[i]
			value, ok := at[f.name]
			if f.options == embed {
				rest := others(at, n.fields)
				value, ok = rest, len(rest) > 0
			}
			switch {
			case !ok:
			case f == without:
				list = append(list, fmt.Sprint(value))
			default:
				list = append(list, unknownIn(f.node, without, value)...)
			}
		}
		if n.kind == reflect.Map {
			for _, value := range at {
				list = append(list, unknownIn(n.elem, without, value)...)
			}
		}
	case []any:
		for n.kind == reflect.Pointer {
			n = n.elem
		}
		for _, value := range at {
			list = append(list, unknownIn(n.elem, without, value)...)
		}
	}
	slices.Sort(list)
	return list
}

// tryOne stores random data of a random type, and has a build change it that lacks one member of
// the type. It reports whether that was possible.
func tryOne(t *testing.T, seed uint64) bool {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	n := randomStruct(r, 4)
	owners := n.structs()
	owner := owners[r.IntN(len(owners))]
	without := &owner.fields[r.IntN(len(owner.fields))]
	if last := &owner.fields[len(owner.fields)-1]; last.options == embed { // it would take any other that is not known
		without = last
	}

	newer := reflect.New(n.typ(nil))
	fill(r, newer.Elem())
	stored := encode(t, newer.Interface())
	older := reflect.New(n.typ(without))
	if err := json.Unmarshal(stored, older.Interface()); err != nil {
		t.Fatal(err)
	}
	before := encodeToCompare(t, older.Interface())
	change(r, older.Elem())
	after := encode(t, older.Interface())
	got, err := Keep(older.Interface(), stored, before, after, nil)
	if _, open := errors.AsType[*Ambiguous](err); open {
		return false
	} else if err != nil {
		t.Fatal(err)
	}
	var was, is any
	if err := errors.Join(json.Unmarshal(stored, &was), json.Unmarshal(got, &is)); err != nil {
		t.Fatal(err)
	}
	if a, b := unknownIn(n, without, was), unknownIn(n, without, is); !slices.Equal(a, b) {
		t.Fatalf("seed %d: of %q there was %q and is %q\nstored %s\nafter  %s\nkept   %s", seed, without.name, a, b, stored, after, got)
	}
	again := reflect.New(older.Type().Elem())
	if err := json.Unmarshal(got, again.Interface()); err != nil {
		t.Fatal(err)
	}
	if read := encode(t, again.Interface()); !same(string(read), string(after)) {
		t.Fatalf("seed %d: the older build wrote %s and reads %s", seed, after, read)
	}
	if err := json.Unmarshal(got, reflect.New(n.typ(nil)).Interface(), json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("seed %d: the newer build cannot read it: %v", seed, err)
	}
	return true
}

func TestNoMemberOfAnyTypeIsLost(t *testing.T) {
	t.Parallel()
	all, possible := 5000, 0
	if testing.Short() { // make test-long has them all
		all = 1000
	}
	for seed := range uint64(all) {
		if tryOne(t, seed) {
			possible++
		}
	}
	if possible < all*9/10 {
		t.Errorf("only %d of %d could be done", possible, all)
	}
}

func FuzzNoMemberOfAnyTypeIsLost(f *testing.F) {
	f.Add(uint64(0))
	f.Fuzz(func(t *testing.T, seed uint64) { tryOne(t, seed) })
}

// Whatever is stored, what a build has written it reads again, and what is kept is JSON.
func FuzzKeep(f *testing.F) {
	for _, stored := range []string{`{"name":"a","x":1,"home":{"zip":1},"lines":[{"article":"a","y":1},{"article":"a"}]}`,
		`{"home":null,"lines":[{}],"by_room":{"":{"a/b~":[]}}}`, `{"NUMBER":1,"work":{"é":"\ud83d\ude00"}}`} {
		f.Add([]byte(stored), uint8(3))
	}
	f.Fuzz(func(t *testing.T, stored []byte, how uint8) {
		var d, again data
		if json.Unmarshal(stored, &d) != nil {
			return
		}
		before := encodeToCompare(t, &d)
		switch how % 4 {
		case 1:
			d.Home, d.Work, d.Name = address{}, nil, "changed"
		case 2:
			d.Lines = append(d.Lines, line{"new", 1})
		case 3:
			slices.Reverse(d.Lines)
			delete(d.ByRoom, "")
		}
		after := encode(t, &d)
		got, err := Keep(&d, stored, before, after, nil)
		if err != nil {
			return // Ambiguous
		}
		if !jsontext.Value(got).IsValid() {
			t.Fatalf("%s is no JSON", got)
		}
		if err := json.Unmarshal(got, &again); err != nil || string(encode(t, &again)) != string(after) {
			t.Fatalf("of %s: wrote %s, kept %s, reads %s, %v", stored, after, got, encode(t, &again), err)
		}
	})
}
