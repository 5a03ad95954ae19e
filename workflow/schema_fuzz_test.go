package workflow

import (
	stdjson "encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// representative has what payloads usually have, and no rule that JSON Schema
// cannot say.
type representative struct {
	Customer string            `json:"customer" validate:"required,max=8"`
	Kind     string            `json:"kind" validate:"omitempty,oneof=new old"`
	Lines    []line            `json:"lines" validate:"required,min=1,max=3,dive"`
	Tags     []string          `json:"tags" validate:"omitempty,unique,dive,required,alphanum"`
	Labels   map[string]string `json:"labels" validate:"max=2,dive,keys,min=2,endkeys,max=3"`
	Ship     address           `json:"ship" validate:"required"`
	Bill     *address          `json:"bill"`
	Discount *float64          `json:"discount" validate:"omitempty,gte=0,lt=1"`
	Gift     bool              `json:"gift"`
	Weight   uint16            `json:"weight" validate:"omitempty,gt=2"`
	Base
}

const representativeOrder = `{"customer":"c-1","kind":"new","lines":[{"sku":"a1","quantity":2},{"sku":"b","quantity":1}],
	"tags":["x","y"],"labels":{"ab":"c"},"ship":{"city":"Ulm","zip":"89"},"bill":{"city":"Bonn"},"discount":0.25,
	"gift":true,"weight":7,"source":"web","hint":"h"}`

// fragments are what a mutation puts into a document.
var fragments = []string{
	`null`, `""`, `"a"`, `"ab"`, `"new"`, `"äö"`, `"a-b"`, `"far too long"`, `"12"`, `0`, `1`, `2`, `3`, `-1`, `0.5`, `1e300`,
	`65536`, `true`, `false`, `[]`, `[null]`, `["a","a"]`, `["a",null]`, `[{}]`, `[{"sku":"a","quantity":1}]`, `{}`,
	`{"zip":"x"}`, `{"zip":"","city":null}`, `{"city":"Ulm"}`, `{"ab":"abcd"}`, `{"ab":null,"cd":"","ef":"x"}`, `{"a":"b"}`,
}

// mutate changes the document as the bytes say: which way down, and what there.
func mutate(v any, bytes []byte) any {
	next := func() int {
		if len(bytes) == 0 {
			return 0
		}
		b := bytes[0]
		bytes = bytes[1:]
		return int(b)
	}
	fragment := func() any {
		var f any
		if err := stdjson.Unmarshal([]byte(fragments[next()%len(fragments)]), &f); err != nil {
			panic(err)
		}
		return f
	}
	var descend func(v any) any
	descend = func(v any) any {
		action := next() % 4
		switch v := v.(type) {
		case map[string]any:
			names := slices.Sorted(maps.Keys(v))
			if len(names) == 0 || action == 3 {
				v[[]string{"unknown", "zip", "ab", "Customer"}[next()%4]] = fragment()
				return v
			}
			name := names[next()%len(names)]
			switch action {
			case 0:
				v[name] = descend(v[name])
			case 1:
				delete(v, name)
			default:
				v[name] = fragment()
			}
			return v
		case []any:
			if len(v) == 0 || action == 3 {
				return append(v, fragment())
			}
			i := next() % len(v)
			v[i] = descend(v[i])
			return v
		default:
			return fragment()
		}
	}
	for n := 0; len(bytes) > 0 && n < 8; n++ {
		if object, ok := v.(map[string]any); ok {
			v = descend(object)
		}
	}
	return v
}

// Whatever becomes of a good document, the schema and the decoder agree on it.
func FuzzSchemaAgreesWithDecode(f *testing.F) {
	step := startWith[representative](f)
	schema := schemaOf(f, step)
	for i := range 256 {
		f.Add([]byte{byte(i), byte(i * 7), byte(i * 31), byte(i * 13)})
		f.Add([]byte{byte(i * 5), byte(i * 3), byte(i), 0, 1, byte(i * 11), byte(i * 17), 2, byte(i)})
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, bytes []byte) {
		var v any
		require.NoError(t, stdjson.Unmarshal([]byte(representativeOrder), &v))
		document, err := stdjson.Marshal(mutate(v, bytes))
		require.NoError(t, err)
		bySchema := accepts(t, schema, string(document))
		_, byDecoder := step.Decode(document)
		require.Equalf(t, (byDecoder == nil), (bySchema == nil), "%s\nschema: %v\ndecoder: %+v", document, bySchema, byDecoder)
	})
}
