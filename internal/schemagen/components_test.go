package schemagen

import (
	"reflect"
	"testing"
	"time"
)

type leaf struct {
	Numbers []int64 `json:"numbers"`
	Place   int64   `json:"place,string,omitzero"`
	Next    *leaf   `json:"next,omitempty" jsonschema:"the next one"`
}

type root struct {
	leaf
	At   time.Time       `json:"at"`
	Leaf map[string]leaf `json:"leaf"`
}

func TestComponents(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} {
		c, end := NewComponents("github.com/pawlhq/pawl/", "#/", nil), `,"additionalProperties":false}`
		of := c.Request
		if open {
			of, end = c.Answer, "}"
		}
		ref, err := Text(of(reflect.TypeFor[[]*root]()))
		if want := `{"type":"array","items":{"$ref":"#/root"}}`; err != nil || string(ref) != want {
			t.Errorf("%s, %v", ref, err)
		}
		const ofLeaf = `"numbers":{"type":"array","items":{"type":"integer","minimum":-9223372036854775808,` +
			`"maximum":9223372036854775807,"format":"int64"}},"place":{"type":"string","pattern":"^-?(?:0|[1-9][0-9]*)$"},` +
			`"next":{"$ref":"#/leaf","description":"the next one"}`
		for name, want := range map[string]string{
			"leaf": `{"type":"object","properties":{` + ofLeaf + `},"required":["numbers"]` + end,
			"root": `{"type":"object","properties":{` + ofLeaf + `,"at":{"type":"string","format":"date-time"},` +
				`"leaf":{"type":"object","additionalProperties":{"$ref":"#/leaf"}}},"required":["numbers","at","leaf"]` + end,
		} {
			if got, err := Text(c.Named[name]); err != nil || string(got) != want {
				t.Errorf("%s: %s, %v; want %s", name, got, err, want)
			}
		}
	}
}

func TestComponentsRefuseOneNameForTwoTypes(t *testing.T) {
	t.Parallel()
	c := NewComponents("github.com/pawlhq/pawl/", "#/", nil)
	c.Answer(reflect.TypeFor[leaf]())
	type leaf struct{ A int }
	defer func() {
		if recover() == nil {
			t.Error("two types have one name")
		}
	}()
	c.Answer(reflect.TypeFor[leaf]())
}
