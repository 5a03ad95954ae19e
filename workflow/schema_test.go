package workflow

import (
	stdjson "encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// startWith is the start of a workflow that takes a P and does nothing.
func startWith[P any](t testing.TB) *Step {
	t.Helper()
	w, err := Define("w", 1,
		Start("start", "done", func(*Call, *struct{}, P) error { return nil }),
	).Final("done").Build()
	require.NoError(t, err)
	return w.Steps[0]
}

// schemaOf is the step's schema, read back as a validator of JSON Schema reads
// it.
func schemaOf(t testing.TB, s *Step) *jsonschema.Resolved {
	t.Helper()
	raw, err := s.Schema()
	require.NoError(t, err)
	var schema jsonschema.Schema
	require.NoErrorf(t, stdjson.Unmarshal(raw, &schema), "in %s", raw)
	require.Equal(t, "https://json-schema.org/draft/2020-12/schema", schema.Schema, "$schema")
	resolved, err := schema.Resolve(nil)
	require.NoErrorf(t, err, "in %s", raw)
	return resolved
}

func accepts(t testing.TB, schema *jsonschema.Resolved, document string) error {
	t.Helper()
	var v any
	if err := stdjson.Unmarshal([]byte(document), &v); err != nil {
		return err
	}
	return schema.Validate(v)
}

type plainPayload struct {
	Name  string  `json:"name"`
	Count int     `json:"count"`
	Small int8    `json:"small"`
	Byte  uint8   `json:"byte"`
	Large uint64  `json:"large"`
	Ratio float64 `json:"ratio"`
	On    bool    `json:"on"`
	Any   any     `json:"any"`
	Raw   jsontext.Value
	Note  *string `json:"note"`
	hide  int
	Skip  string `json:"-"`
}

type requiredPayload struct {
	Name  string            `json:"name" validate:"required"`
	Count int               `json:"count" validate:"required"`
	Ratio float64           `json:"ratio" validate:"required"`
	On    bool              `json:"on" validate:"required"`
	Tags  []string          `json:"tags" validate:"required"`
	Map   map[string]string `json:"map" validate:"required"`
	Zero  *int              `json:"zero" validate:"required"`
	Any   any               `json:"any" validate:"required"`
}

const allRequired = `{"name":"n","count":-1,"ratio":0.5,"on":true,"tags":[],"map":{},"zero":0,"any":0}`

func with(document, member string) string {
	name := strings.SplitAfter(member, ":")[0]
	for _, m := range strings.Split(strings.Trim(document, "{}"), ",") {
		if strings.HasPrefix(m, name) {
			return strings.Replace(document, m, member, 1)
		}
	}
	return document
}

func without(document, name string) string {
	var v map[string]stdjson.RawMessage
	if err := stdjson.Unmarshal([]byte(document), &v); err != nil {
		panic(err)
	}
	delete(v, name)
	out, err := stdjson.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(out)
}

type boundsPayload struct {
	Text    string         `json:"text" validate:"omitempty,min=2,max=3"`
	Exact   string         `json:"exact" validate:"omitempty,len=2"`
	Open    string         `json:"open" validate:"gt=1,lt=4"`
	Int     int            `json:"int" validate:"gte=-1,lte=3"`
	Uint    uint16         `json:"uint" validate:"omitempty,gt=2,lt=9"`
	Float   float64        `json:"float" validate:"gte=0,lt=0.5"`
	List    []int          `json:"list" validate:"max=2,dive,min=1"`
	Full    []int          `json:"full" validate:"omitempty,min=1"`
	Labels  map[string]int `json:"labels" validate:"max=1,dive,keys,min=2,endkeys,gt=0"`
	Pointer *int           `json:"pointer" validate:"omitempty,min=2"`
	Either  string         `json:"either" validate:"omitempty,len=1|len=3"`
	Fixed   [2]int         `json:"fixed" validate:"dive,max=5"`
}

type choicePayload struct {
	Kind  string  `json:"kind" validate:"required,oneof=new 'used once' old"`
	Level int     `json:"level" validate:"oneof=0 2 4"`
	Maybe string  `json:"maybe" validate:"omitempty,oneof=a b"`
	Ref   *string `json:"ref" validate:"omitempty,oneof=a b"`
	Fixed string  `json:"fixed" validate:"omitempty,eq=x"`
	Not   string  `json:"not" validate:"ne=x"`
	Never string  `json:"never" validate:"noneof=a b"`
	Same  []int   `json:"same" validate:"unique"`
	True  bool    `json:"true" validate:"eq=true"`
	Four  int     `json:"four" validate:"omitempty,eq=4"`
}

type line struct {
	SKU      string `json:"sku" validate:"required,alphanum,max=4"`
	Quantity int    `json:"quantity" validate:"gt=0"`
}

type address struct {
	City string `json:"city"`
	Zip  string `json:"zip" validate:"omitempty,numeric"`
}

type Base struct {
	Source string `json:"source" validate:"required"`
	Hint   string `json:"hint"`
}

type nestedPayload struct {
	Lines     []line          `json:"lines" validate:"required,dive"`
	Unchecked []line          `json:"unchecked"`
	ByName    map[string]line `json:"by_name" validate:"dive"`
	Ship      address         `json:"ship" validate:"required"`
	Bill      *address        `json:"bill"`
	Spare     line            `json:"spare" validate:"omitempty"`
	Skipped   line            `json:"skipped" validate:"-"`
	Grid      [][]int         `json:"grid" validate:"dive,max=2,dive,min=1"`
	Pointers  []*line         `json:"pointers" validate:"dive,required"`
}

type embeddedPayload struct {
	Base
	Name string `json:"name"`
}

type embeddedPointerPayload struct {
	*Base
	Name string `json:"name"`
}

type embeddedMapPayload struct {
	Name string         `json:"name"`
	Rest map[string]int `json:",embed"`
}

type namedEmbeddedPayload struct {
	Base `json:"base"`
}

type textPayload struct {
	At    time.Time      `json:"at"`
	ID    uuid.UUID      `json:"id" validate:"required"`
	Bytes []byte         `json:"bytes"`
	Hash  [2]byte        `json:"hash"`
	Big   int64          `json:"big,string"`
	Keys  map[int]string `json:"keys"`
	UUID  string         `json:"uuid" validate:"omitempty,uuid"`
	Start string         `json:"start" validate:"omitempty,startswith=a.b,endswith=z"`
	Mail  string         `json:"mail" validate:"omitempty,email"`
	Money string         `json:"money" validate:"omitempty,iso4217"`
}

const textRequired = `"id":"f47ac10b-58cc-4372-a567-0e02b2c3d479"`

type betweenPayload struct {
	From   int    `json:"from"`
	To     int    `json:"to" validate:"gtefield=From"`
	Reason string `json:"reason" validate:"required_with=Code"`
	Code   string `json:"code"`
}

// The schema refuses what Decode refuses and accepts what it accepts.
func TestSchemaAgreesWithDecode(t *testing.T) {
	_ = plainPayload{}.hide
	cases := []struct {
		name     string
		step     *Step
		accepted []string
		refused  []string
		decoder  []string // refused by the decoder alone: JSON Schema has no word for it
	}{
		{
			name: "none", step: startWith[None](t),
			accepted: []string{`{}`, ` {} `},
			refused:  []string{`{"a":1}`, `null`, `[]`, `""`, `1`, `true`},
		},
		{
			name: "no rules", step: startWith[plainPayload](t),
			accepted: []string{
				`{}`, `{"name":"","count":0,"small":-128,"byte":255,"large":0,"ratio":-1e3,"on":false}`,
				`{"name":null,"count":null,"small":null,"on":null,"any":null,"note":null,"Raw":null}`,
				`{"any":{"x":[1]},"Raw":[{}],"note":"x"}`,
			},
			refused: []string{
				`{"Name":"x"}`, `{"hide":1}`, `{"Skip":"x"}`, `{"skip":"x"}`, `{"raw":1}`,
				`{"name":1}`, `{"count":"1"}`, `{"count":1.5}`, `{"small":128}`, `{"byte":-1}`,
				`{"large":-1}`, `{"ratio":"1"}`, `{"on":1}`, `{"note":1}`, `{"name":["x"]}`, `{"ratio":1e400}`,
			},
			decoder: []string{`{"count":1.0}`, `{"count":1e2}`, `{"count":9223372036854775808}`},
		},
		{
			name: "required", step: startWith[requiredPayload](t),
			accepted: []string{allRequired, with(allRequired, `"any":""`), with(allRequired, `"ratio":-0.1`)},
			refused: []string{
				`{}`, with(allRequired, `"name":""`), with(allRequired, `"name":null`), with(allRequired, `"count":0`),
				with(allRequired, `"ratio":0.0`), with(allRequired, `"on":false`), with(allRequired, `"tags":null`),
				with(allRequired, `"map":null`), with(allRequired, `"zero":null`), with(allRequired, `"any":null`),
				without(allRequired, "name"), without(allRequired, "count"), without(allRequired, "ratio"),
				without(allRequired, "on"), without(allRequired, "tags"), without(allRequired, "map"),
				without(allRequired, "zero"), without(allRequired, "any"),
			},
		},
		{
			name: "bounds", step: startWith[boundsPayload](t),
			accepted: []string{
				`{"open":"ab","fixed":[5,5]}`, `{"open":"äöü","text":"äö"}`, `{"open":"ab","text":"","exact":""}`,
				`{"open":"ab","text":null,"exact":"ab"}`, `{"open":"ab","int":-1}`, `{"open":"ab","int":3,"uint":0}`,
				`{"open":"ab","uint":8,"float":0.49}`, `{"open":"ab","list":[1,2]}`, `{"open":"ab","list":[]}`,
				`{"open":"ab","list":null,"full":null}`, `{"open":"ab","full":[0]}`, `{"open":"ab","labels":{"ab":1}}`,
				`{"open":"ab","pointer":2}`, `{"open":"ab","pointer":null}`, `{"open":"ab","either":"abc"}`,
				`{"open":"ab","either":"a"}`, `{"open":"ab","either":""}`, `{"open":"ab","fixed":[null,1]}`,
			},
			refused: []string{
				`{}`, `{"open":null}`, `{"open":"a"}`, `{"open":"abcd"}`, `{"open":"ab","text":"a"}`,
				`{"open":"ab","text":"abcd"}`, `{"open":"ab","exact":"a"}`, `{"open":"ab","int":-2}`,
				`{"open":"ab","int":4}`, `{"open":"ab","uint":2}`, `{"open":"ab","uint":9}`, `{"open":"ab","float":0.5}`,
				`{"open":"ab","float":-0.1}`, `{"open":"ab","list":[1,2,3]}`, `{"open":"ab","list":[0]}`,
				`{"open":"ab","list":[null]}`, `{"open":"ab","full":[]}`, `{"open":"ab","labels":{"a":1}}`,
				`{"open":"ab","labels":{"ab":0}}`, `{"open":"ab","labels":{"ab":1,"cd":1}}`, `{"open":"ab","pointer":0}`,
				`{"open":"ab","either":"ab"}`, `{"open":"ab","fixed":[1]}`, `{"open":"ab","fixed":[1,6]}`,
				`{"open":"ab","fixed":[1,1,1]}`,
			},
		},
		{
			name: "choices", step: startWith[choicePayload](t),
			accepted: []string{
				`{"kind":"new","true":true}`, `{"kind":"used once","level":4,"true":true}`,
				`{"kind":"old","true":true,"maybe":"","ref":null}`, `{"kind":"old","true":true,"maybe":"a","ref":"b"}`,
				`{"kind":"old","true":true,"fixed":"x","not":"y","never":"c","same":[1,2],"four":4}`,
				`{"kind":"old","true":true,"fixed":"","four":0,"not":null,"level":null}`,
			},
			refused: []string{
				`{}`, `{"kind":"used","true":true}`, `{"kind":"new"}`, `{"kind":"new","true":false}`,
				`{"kind":"new","true":true,"level":1}`, `{"kind":"new","true":true,"maybe":"c"}`,
				`{"kind":"new","true":true,"ref":""}`, `{"kind":"new","true":true,"ref":"c"}`,
				`{"kind":"new","true":true,"fixed":"y"}`, `{"kind":"new","true":true,"not":"x"}`,
				`{"kind":"new","true":true,"never":"a"}`, `{"kind":"new","true":true,"same":[1,1]}`,
				`{"kind":"new","true":true,"four":5}`, `{"kind":null,"true":true}`,
			},
		},
		{
			name: "nested", step: startWith[nestedPayload](t),
			accepted: []string{
				`{"lines":[],"ship":{"city":"Ulm"}}`,
				`{"lines":[{"sku":"a1","quantity":1}],"ship":{"zip":"1"}}`,
				`{"lines":[],"ship":{"city":"Ulm"},"unchecked":[{},null,{"sku":"far too long"}]}`,
				`{"lines":[],"ship":{"city":"Ulm"},"by_name":{"x":{"sku":"a","quantity":1}},"bill":{}}`,
				`{"lines":[],"ship":{"city":"Ulm"},"bill":null,"by_name":null,"spare":{},"skipped":{"sku":"-"}}`,
				`{"lines":[],"ship":{"city":"Ulm"},"spare":{"sku":"","quantity":0},"skipped":null,"grid":[[1,2],[],null]}`,
				`{"lines":[],"ship":{"city":"Ulm"},"pointers":[{"sku":"a","quantity":1}]}`,
			},
			refused: []string{
				`{}`, `{"lines":null,"ship":{"city":"Ulm"}}`, `{"lines":[],"ship":{}}`, `{"lines":[]}`,
				`{"lines":[],"ship":{"city":"","zip":null}}`, `{"lines":[],"ship":null}`, `{"lines":[null],"ship":{"city":"Ulm"}}`,
				`{"lines":[{}],"ship":{"city":"Ulm"}}`, `{"lines":[{"sku":"a"}],"ship":{"city":"Ulm"}}`,
				`{"lines":[{"sku":"a-b","quantity":1}],"ship":{"city":"Ulm"}}`,
				`{"lines":[{"sku":"a","quantity":1,"x":1}],"ship":{"city":"Ulm"}}`,
				`{"lines":[],"ship":{"city":"Ulm"},"bill":{"zip":"x"}}`,
				`{"lines":[],"ship":{"city":"Ulm"},"by_name":{"x":{}}}`,
				`{"lines":[],"ship":{"city":"Ulm"},"by_name":{"x":null}}`,
				`{"lines":[],"ship":{"city":"Ulm"},"spare":{"sku":"a"}}`,
				`{"lines":[],"ship":{"city":"Ulm"},"unchecked":[{"nope":1}]}`,
				`{"lines":[],"ship":{"city":"Ulm"},"grid":[[1,2,3]]}`, `{"lines":[],"ship":{"city":"Ulm"},"grid":[[0]]}`,
				`{"lines":[],"ship":{"city":"Ulm"},"pointers":[null]}`,
			},
		},
		{
			name: "embedded", step: startWith[embeddedPayload](t),
			accepted: []string{`{"source":"web"}`, `{"source":"web","name":"n","hint":null}`},
			refused:  []string{`{}`, `{"Base":{"source":"web"}}`, `{"source":""}`, `{"source":null}`},
		},
		{
			name: "embedded pointer", step: startWith[embeddedPointerPayload](t),
			accepted: []string{`{}`, `{"name":"n"}`, `{"source":"web"}`, `{"source":"web","hint":"h"}`},
			refused:  []string{`{"hint":"h"}`, `{"hint":null}`, `{"source":""}`, `{"source":null}`},
		},
		{
			name: "embedded map", step: startWith[embeddedMapPayload](t),
			accepted: []string{`{}`, `{"name":"n","x":1,"y":null}`},
			refused:  []string{`{"x":"1"}`, `{"name":1}`},
		},
		{
			name: "embedded struct with a name", step: startWith[namedEmbeddedPayload](t),
			accepted: []string{`{"base":{"source":"web"}}`},
			refused:  []string{`{}`, `{"source":"web"}`, `{"base":{}}`, `{"base":null}`},
		},
		{
			name: "text", step: startWith[textPayload](t),
			accepted: []string{
				`{` + textRequired + `}`, `{` + textRequired + `,"at":"2026-01-02T03:04:05Z"}`,
				`{` + textRequired + `,"bytes":"aGk=","hash":"aGk=","big":"-9","keys":{"-1":"x","10":null}}`,
				`{` + textRequired + `,"bytes":"","hash":null,"big":null,"at":null,"keys":null}`,
				`{` + textRequired + `,"uuid":"F47AC10B-58CC-4372-A567-0E02B2C3D479","start":"a.b z","mail":"a@b.de","money":"EUR"}`,
			},
			refused: []string{
				`{}`, `{"id":null}`, `{"id":"00000000-0000-0000-0000-000000000000"}`, `{"id":7}`,
				`{` + textRequired + `,"at":7}`, `{` + textRequired + `,"bytes":"aGk"}`, `{` + textRequired + `,"bytes":[1]}`,
				`{` + textRequired + `,"hash":"aGkh"}`, `{` + textRequired + `,"big":9}`, `{` + textRequired + `,"big":"09"}`,
				`{` + textRequired + `,"big":""}`, `{` + textRequired + `,"keys":{"x":"x"}}`, `{` + textRequired + `,"keys":{"01":"x"}}`,
				`{` + textRequired + `,"uuid":"f47ac10b"}`, `{` + textRequired + `,"start":"a_b z"}`,
				`{` + textRequired + `,"start":"a.b"}`, `{` + textRequired + `,"money":"eur"}`,
			},
			decoder: []string{
				`{"id":"f47ac10b"}`, `{` + textRequired + `,"at":"today"}`, `{` + textRequired + `,"mail":"a"}`,
				`{` + textRequired + `,"money":"XXZ"}`, `{` + textRequired + `,"big":"9223372036854775808"}`,
			},
		},
		{
			name: "rules between fields", step: startWith[betweenPayload](t),
			accepted: []string{`{}`, `{"from":1,"to":1}`, `{"code":"c","reason":"r"}`, `{"reason":"r"}`},
			refused:  []string{`{"to":"1"}`},
			decoder:  []string{`{"from":2,"to":1}`, `{"code":"c"}`},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { agree(t, c.step, c.accepted, c.refused, c.decoder) })
	}
}

// agree checks documents against the schema and the decoder: those that both
// accept, those that both refuse, and those that only the decoder refuses.
func agree(t *testing.T, step *Step, accepted, refused, decoder []string) {
	t.Helper()
	schema := schemaOf(t, step)
	raw, err := step.Schema()
	require.NoError(t, err)
	check := func(document string, bySchema, byDecoder bool) {
		t.Helper()
		if err := accepts(t, schema, document); (err == nil) != bySchema {
			t.Errorf("schema: %s: %v\n%s", document, err, raw)
		}
		if _, err := step.Decode([]byte(document)); (err == nil) != byDecoder {
			t.Errorf("decoder: %s: %v", document, err)
		}
	}
	for _, d := range accepted {
		check(d, true, true)
	}
	for _, d := range refused {
		check(d, false, false)
	}
	for _, d := range decoder {
		check(d, true, false)
	}
}
