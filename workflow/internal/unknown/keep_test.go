package unknown

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type address struct {
	Street string `json:"street,omitzero"`
}

type line struct {
	Article string `json:"article"`
	Count   int    `json:"count"`
}

// data is what an older build knows.
type data struct {
	Name   string             `json:"name"`
	Home   address            `json:"home,omitzero"`
	Work   *address           `json:"work,omitempty"`
	Lines  []line             `json:"lines,omitempty"`
	ByRoom map[string]address `json:"by_room,omitempty"`
	Number int                `json:"number,omitzero,case:ignore"`
	Own    own                `json:"own,omitzero"`
	Ends   [2]address         `json:"ends,omitzero"`
	Links  [2]*address        `json:"links,omitzero"`
	Named  named              `json:"named,omitzero"`
	Office office             `json:"office,omitzero"`
	Many   []office           `json:"many,omitempty"`
}

type office struct {
	At *address `json:"at,omitempty"`
}

// named takes every other member too.
type named struct {
	Others map[string]address `json:",embed"`
}

// own keeps what it wants to keep: "a".
type own struct{ a int }

func (o *own) UnmarshalJSON(raw []byte) error {
	var v struct {
		A int `json:"a"`
	}
	err := json.Unmarshal(raw, &v)
	o.a = v.A
	return err
}

func (o own) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `{"a":%d}`, o.a), nil }

// kept is what becomes of stored data when an older build changes it.
func kept(t *testing.T, stored string, change func(*data), gone ...string) (string, error) {
	t.Helper()
	var d data
	require.NoError(t, json.Unmarshal([]byte(stored), &d))
	before := encodeToCompare(t, &d)
	change(&d)
	drop := map[string]bool{}
	for _, path := range gone {
		drop[path] = true
	}
	got, err := Keep(&d, []byte(stored), before, encode(t, &d), drop)
	return string(got), err
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v, json.Deterministic(true))
	require.NoError(t, err)
	return raw
}

func encodeToCompare(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := Encode(v)
	require.NoError(t, err)
	return raw
}

func same(a, b string) bool {
	x, y := jsontext.Value(a), jsontext.Value(b)
	return x.Canonicalize() == nil && y.Canonicalize() == nil && string(x) == string(y)
}

func TestUnknownMembersAreKept(t *testing.T) {
	t.Parallel()
	nothing := func(*data) {}
	for name, c := range map[string]struct {
		stored string
		change func(*data)
		want   string
	}{
		"nothing unknown": {`{"name":"a"}`, func(d *data) { d.Name = "b" }, `{"name":"b"}`},
		"at the top":      {`{"x":[1,{"y":null}],"name":"a"}`, func(d *data) { d.Name = "b" }, `{"name":"b","x":[1,{"y":null}]}`},
		"in a struct": {`{"name":"","home":{"street":"s","zip":"1"}}`, func(d *data) { d.Home.Street = "t" },
			`{"name":"","home":{"street":"t","zip":"1"}}`},
		"of nothing known": {`{"name":"","home":{"zip":"1"},"work":{"zip":"2"}}`, nothing, `{"name":"","home":{"zip":"1"},"work":{"zip":"2"}}`},
		"of a zero struct": {`{"name":"","home":{"street":"s","zip":"1"}}`, func(d *data) { d.Home = address{} },
			`{"name":"","home":{"zip":"1"}}`},
		"of what is removed": {`{"name":"","work":{"street":"s","zip":"1"}}`, func(d *data) { d.Work = nil }, `{"name":""}`},
		"of what a pointer leads to, of which all that is known becomes zero": {`{"name":"","work":{"street":"s","zip":"1"}}`,
			func(d *data) { d.Work.Street = "" }, `{"name":"","work":{"zip":"1"}}`},
		"of what is removed, of which nothing was known": {`{"name":"","work":{"zip":"1"}}`, func(d *data) { d.Work = nil }, `{"name":""}`},
		"of what is removed with a zero struct": {`{"name":"","office":{"at":{"zip":"1"},"x":2}}`, func(d *data) { d.Office = office{} },
			`{"name":"","office":{"x":2}}`},
		"of what is moved, and nothing is in it": {`{"name":"","many":[{"at":{"zip":"1"}},{}]}`, func(d *data) { slices.Reverse(d.Many) },
			`{"name":"","many":[{},{"at":{"zip":"1"}}]}`},
		"in a map": {`{"name":"","by_room":{"a":{"street":"s","zip":"1"},"b":{"street":"t","zip":"2"}}}`,
			func(d *data) { delete(d.ByRoom, "a"); d.ByRoom["c"] = address{"u"} },
			`{"name":"","by_room":{"b":{"street":"t","zip":"2"},"c":{"street":"u"}}}`},
		"in an embedded map": {`{"name":"","named":{"a":{"street":"s","zip":"1"},"b":{"street":"t","zip":"2"}}}`,
			func(d *data) {
				delete(d.Named.Others, "a")
				d.Named.Others["b"] = address{"u"}
				d.Named.Others["c"] = address{"v"}
			},
			`{"name":"","named":{"b":{"street":"u","zip":"2"},"c":{"street":"v"}}}`},
		"in an array of fixed length": {`{"name":"","ends":[{"street":"s","zip":"1"},{"zip":"2"}]}`,
			func(d *data) { d.Ends[1].Street = "t" },
			`{"name":"","ends":[{"street":"s","zip":"1"},{"street":"t","zip":"2"}]}`},
		"in an array of fixed length that becomes zero": {`{"name":"","ends":[{"street":"s","zip":"1"},{"zip":"2"}]}`,
			func(d *data) { d.Ends = [2]address{} }, `{"name":"","ends":[{"zip":"1"},{"zip":"2"}]}`},
		"in an array of fixed length that was and is zero": {`{"name":"","ends":[{"zip":"1"},{"zip":"2"}]}`, nothing,
			`{"name":"","ends":[{"zip":"1"},{"zip":"2"}]}`},
		"in an array of fixed length, removed": {`{"name":"","links":[{"zip":"1"},null]}`,
			func(d *data) { d.Links[0] = nil }, `{"name":""}`},
		"in an array, in place": {`{"name":"","lines":[{"article":"a","count":1,"x":1},{"article":"b","count":2,"x":2}]}`,
			func(d *data) { d.Lines[1].Count = 3 }, `{"name":"","lines":[{"article":"a","count":1,"x":1},{"article":"b","count":3,"x":2}]}`},
		"in an array, replaced in place": {`{"name":"","lines":[{"article":"a","count":1,"x":1},{"article":"b","count":2,"x":2}]}`,
			func(d *data) { d.Lines[1] = line{"c", 3} }, `{"name":"","lines":[{"article":"a","count":1,"x":1},{"article":"c","count":3,"x":2}]}`},
		"of a type that decodes itself": {`{"name":"","own":{"a":1,"x":2},"x":3}`, func(d *data) { d.Name = "b" },
			`{"name":"b","own":{"a":1},"x":3}`},
		"in an array, removed": {`{"name":"","lines":[{"article":"a","count":1,"x":1},{"article":"b","count":2,"x":2}]}`,
			func(d *data) { d.Lines = d.Lines[1:] }, `{"name":"","lines":[{"article":"b","count":2,"x":2}]}`},
		"in an array, moved and added": {`{"name":"","lines":[{"article":"a","count":1,"x":1},{"article":"b","count":2,"x":2}]}`,
			func(d *data) { d.Lines = []line{d.Lines[1], {"c", 3}, d.Lines[0]} },
			`{"name":"","lines":[{"article":"b","count":2,"x":2},{"article":"c","count":3},{"article":"a","count":1,"x":1}]}`},
		"in an array, moved, and another one replaced in place": {
			`{"name":"","lines":[{"article":"a","count":1,"x":1},{"article":"b","count":2,"x":2},{"article":"c","count":3,"x":3}]}`,
			func(d *data) { d.Lines = []line{d.Lines[2], {"d", 4}, d.Lines[0]} },
			`{"name":"","lines":[{"article":"c","count":3,"x":3},{"article":"d","count":4,"x":2},{"article":"a","count":1,"x":1}]}`},
		"in an array, one like another added at the end": {`{"name":"","lines":[{"article":"a","count":1,"x":1}]}`,
			func(d *data) { d.Lines = append(d.Lines, d.Lines[0]) },
			`{"name":"","lines":[{"article":"a","count":1,"x":1},{"article":"a","count":1}]}`},
		"an array without anything unknown": {`{"name":"","lines":[{"article":"a","count":1}],"x":1}`,
			func(d *data) { d.Lines = []line{{"b", 1}, {"c", 1}} },
			`{"name":"","lines":[{"article":"b","count":1},{"article":"c","count":1}],"x":1}`},
		"beside a name in another case": {`{"name":"","NUMBER":1,"x":1}`, func(d *data) { d.Number = 2 }, `{"name":"","number":2,"x":1}`},
	} {
		got, err := kept(t, c.stored, c.change)
		assert.Truef(t, err == nil && same(got, c.want), "%s: %s, %v; want %s", name, got, err, c.want)
	}
}

func TestOpenTypes(t *testing.T) {
	t.Parallel()
	const (
		alike    = `{"name":"","lines":[{"article":"a","count":1,"x":1},{"article":"b","count":2,"x":2},{"article":"b","count":2,"x":3}]}`
		distinct = `{"name":"","lines":[{"article":"a","count":1,"x":1},{"article":"b","count":2,"x":2},{"article":"c","count":3,"x":3}]}`
	)
	for name, c := range map[string]struct {
		stored string
		change func(*data)
	}{
		"one removed, one added elsewhere":   {alike, func(d *data) { d.Lines = append(d.Lines[1:], line{"d", 1}) }},
		"one of two that look alike removed": {alike, func(d *data) { d.Lines = d.Lines[:2] }},
		"two became one":                     {alike, func(d *data) { d.Lines = []line{{"d", 1}} }},
		"all moved, two changed": {alike, func(d *data) {
			d.Lines[0].Count, d.Lines[1].Count = 7, 8
			slices.Reverse(d.Lines)
		}},
		"moved, one removed and one added elsewhere": {distinct, func(d *data) { d.Lines = []line{d.Lines[2], d.Lines[1], {"d", 1}} }},
		"one changed to look as another":             {distinct, func(d *data) { d.Lines[0] = d.Lines[1] }},
	} {
		_, err := kept(t, c.stored, c.change)
		open, ok := errors.AsType[*Ambiguous](err)
		assert.Truef(t, ok && open.Path == "/lines/*", "%s: %v", name, err)
		_, err = kept(t, c.stored, c.change, "/lines/*/x")
		assert.NoErrorf(t, err, "%s, where the member is not kept", name)
	}
}

// The place says which element it is.
func TestAnArrayOfFixedLengthIsNeverOpen(t *testing.T) {
	t.Parallel()
	const (
		alike    = `{"name":"","ends":[{"street":"s","zip":"1"},{"street":"s","zip":"2"}]}`
		distinct = `{"name":"","ends":[{"street":"s","zip":"1"},{"street":"t","zip":"2"}]}`
	)
	for name, c := range map[string]struct {
		stored string
		ends   [2]address
		want   string
	}{
		"the first of two that look alike changed":  {alike, [2]address{{"u"}, {"s"}}, `[{"street":"u","zip":"1"},{"street":"s","zip":"2"}]`},
		"the second of two that look alike changed": {alike, [2]address{{"s"}, {"u"}}, `[{"street":"s","zip":"1"},{"street":"u","zip":"2"}]`},
		"both changed":          {distinct, [2]address{{"u"}, {"v"}}, `[{"street":"u","zip":"1"},{"street":"v","zip":"2"}]`},
		"changed to look alike": {distinct, [2]address{{"t"}, {"t"}}, `[{"street":"t","zip":"1"},{"street":"t","zip":"2"}]`},
		"exchanged":             {distinct, [2]address{{"t"}, {"s"}}, `[{"street":"t","zip":"2"},{"street":"s","zip":"1"}]`},
		"moved and changed":     {distinct, [2]address{{"t"}, {"u"}}, `[{"street":"t","zip":"2"},{"street":"u","zip":"1"}]`},
	} {
		got, err := kept(t, c.stored, func(d *data) { d.Ends = c.ends })
		want := `{"name":"","ends":` + c.want + `}`
		assert.Truef(t, err == nil && same(got, want), "%s: %s, %v; want %s", name, got, err, want)
	}
}

func TestDroppedMembers(t *testing.T) {
	t.Parallel()
	got, err := kept(t, `{"name":"a","x":1,"home":{"zip":"1","y":2}}`, func(*data) {}, "/x", "/home/zip")
	assert.Truef(t, err == nil && same(got, `{"name":"a","home":{"y":2}}`), "%s, %v", got, err)
}

// Of a type within itself each member has one path, as it is recorded.
func TestDroppedMembers_RecursiveType(t *testing.T) {
	t.Parallel()
	type tree struct {
		V    int              `json:"v"`
		Next *tree            `json:"next,omitzero"`
		Many []tree           `json:"many,omitzero"`
		By   map[string]*tree `json:"by,omitzero"`
	}
	d := struct {
		Tree tree `json:"tree"`
	}{}
	const stored = `{"x":1,"tree":{"v":1,"x":1,"next":{"v":2,"x":2,"y":1,"next":{"v":3,"x":3}},"many":[{"v":4,"x":4,"many":[{"v":5,"x":5}]}],
		"by":{"a":{"v":6,"x":6,"next":{"v":7,"x":7}}}}}`
	require.NoError(t, json.Unmarshal([]byte(stored), &d))
	got, err := Keep(&d, []byte(stored), encodeToCompare(t, &d), encode(t, &d), map[string]bool{"/tree/x": true})
	const want = `{"x":1,"tree":{"v":1,"next":{"v":2,"y":1,"next":{"v":3}},"many":[{"v":4,"many":[{"v":5}]}],
		"by":{"a":{"v":6,"next":{"v":7}}}}}`
	assert.Truef(t, err == nil && same(string(got), want), "%s, %v", got, err)
}
