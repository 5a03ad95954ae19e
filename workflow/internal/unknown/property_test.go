package unknown

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	kinds := []reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map, reflect.Pointer}
	switch kind := append(kinds, slices.Repeat([]reflect.Kind{reflect.Struct}, 3)...)[r.IntN(8)]; kind {
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
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
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

// changer changes a value of an older build, and that of a newer one which was read from the same data likewise.
type changer struct {
	r     *rand.Rand
	moved bool // an element was made as another one was: no build that lacks a member can tell that from a move
}

// change gives some of the numbers and texts another value, where they are, makes some zero, and sets pointers, slices and maps
// to nil.
func (c *changer) change(t *testing.T, older, newer reflect.Value) {
	t.Helper()
	switch older.Kind() {
	case reflect.Int64, reflect.String:
		switch c.r.IntN(5) {
		case 0:
			fill(c.r, older)
		case 1:
			older.SetZero()
		}
		newer.Set(older)
	case reflect.Struct:
		for i := range older.NumField() {
			c.change(t, older.Field(i), newer.FieldByName(older.Type().Field(i).Name))
		}
	case reflect.Pointer, reflect.Slice, reflect.Map:
		switch {
		case older.IsNil():
		case c.r.IntN(6) == 0:
			older.SetZero()
			newer.SetZero()
		default:
			c.parts(t, older, newer)
		}
	case reflect.Array:
		c.parts(t, older, newer)
	}
}

func (c *changer) parts(t *testing.T, older, newer reflect.Value) {
	t.Helper()
	switch older.Kind() {
	case reflect.Pointer:
		c.change(t, older.Elem(), newer.Elem())
	case reflect.Map:
		for _, key := range older.MapKeys() {
			a, b := reflect.New(older.Type().Elem()).Elem(), reflect.New(newer.Type().Elem()).Elem()
			a.Set(older.MapIndex(key))
			b.Set(newer.MapIndex(key))
			c.change(t, a, b)
			older.SetMapIndex(key, a)
			newer.SetMapIndex(key, b)
		}
	default:
		was := make([]string, older.Len())
		for i := range was {
			was[i] = string(encodeToCompare(t, older.Index(i).Addr().Interface()))
		}
		for i := range was {
			c.change(t, older.Index(i), newer.Index(i))
			is := string(encodeToCompare(t, older.Index(i).Addr().Interface()))
			c.moved = c.moved || is != was[i] && slices.Contains(was, is)
		}
	}
}

// tryOne stores random data of a random type, and has a build change it that lacks one member of
// the type. What is kept is what a build would have stored that has all members and makes the same change. It
// reports whether that was possible.
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

	first, newer, older := reflect.New(n.typ(nil)), reflect.New(n.typ(nil)), reflect.New(n.typ(without))
	fill(r, first.Elem())
	stored := encode(t, first.Interface())
	require.NoError(t, errors.Join(json.Unmarshal(stored, newer.Interface()), json.Unmarshal(stored, older.Interface())))
	before := encodeToCompare(t, older.Interface())
	c := changer{r: r}
	c.change(t, older.Elem(), newer.Elem())
	want, after := encode(t, newer.Interface()), encode(t, older.Interface())
	got, err := Keep(older.Interface(), stored, before, after, nil)
	if _, open := errors.AsType[*Ambiguous](err); open {
		return false
	} else if err != nil {
		t.Fatal(err)
	}
	if read, want := reread(t, older.Type(), got), reread(t, older.Type(), after); !same(read, want) {
		t.Fatalf("seed %d: the older build wrote %s, and reads %s", seed, want, read)
	}
	knowing := json.RejectUnknownMembers(true)
	if read, want := reread(t, newer.Type(), got, knowing), reread(t, newer.Type(), want); !c.moved && !same(read, want) {
		t.Fatalf("seed %d: without %q, of type %s\nstored %s\nafter  %s\nkept   %s\nwant   %s",
			seed, without.name, older.Type(), stored, after, got, want)
	}
	return true
}

// reread is what a build reads, encoded again.
func reread(t *testing.T, pointer reflect.Type, raw []byte, opts ...json.Options) string {
	t.Helper()
	v := reflect.New(pointer.Elem())
	require.NoErrorf(t, json.Unmarshal(raw, v.Interface(), opts...), "%s cannot be read as %s", raw, pointer)
	return string(encode(t, v.Interface()))
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
	assert.Truef(t, possible >= all*9/10, "only %d of %d could be done", possible, all)
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
		require.Truef(t, jsontext.Value(got).IsValid(), "%s is no JSON", got)
		if err := json.Unmarshal(got, &again); err != nil || string(encode(t, &again)) != string(after) {
			t.Fatalf("of %s: wrote %s, kept %s, reads %s, %v", stored, after, got, encode(t, &again), err)
		}
	})
}
