package workflow

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The decoder stops at the first field that it cannot read; the answer has the others as well.
func TestDecodeNamesEveryFieldThatCannotBeRead(t *testing.T) {
	const text, integer = "must be a string", "must be an integer of 64 bits"
	s := orderStep(t)
	for _, c := range []struct {
		name, payload string
		fields        []FieldError
	}{
		{"two types", `{"customer":5,"total":"much"}`, []FieldError{{"/customer", text}, {"/total", integer}}},
		{"unknown fields beside types", `{"nope":1,"customer":5,"no/pe":2}`, []FieldError{
			{"/nope", "unknown field"}, {"/customer", text}, {"/no~1pe", "unknown field"}}},
		{"types in lists and maps", `{"customer":"c","lines":[{"sku":1,"quantity":"x"},7,{"sku":"s","quantity":1.5}],"st.o[ck":{"a":[],` +
			`"b":{"sku":{},"quantity":1}},"pair":["a","b"]}`,
			[]FieldError{{"/lines/0/sku", text}, {"/lines/0/quantity", integer}, {"/lines/1", "must be an object"}, {"/lines/2/quantity", integer},
				{"/st.o[ck/a", "must be an object"}, {"/st.o[ck/b/sku", text}, {"/pair/0", integer}, {"/pair/1", integer}}},
		{"an embedded struct", `{"customer":"c","channel":1,"phone":2}`, []FieldError{{"/channel", text}, {"/phone", text}}},
		{"values out of range, and forms", `{"customer":"c","small":256,"total":1e30,"at":"today","id":"7","bytes":"?","currency":"EURO",` +
			`"opening":"late","quoted":7}`, []FieldError{
			{"/small", "must be a non-negative integer of 8 bits"}, {"/total", integer}, {"/at", "must be an RFC 3339 time"},
			{"/id", "must be a UUID"},
			{"/bytes", "must be a base64 string"}, {"/currency", "must be a valid string"}, {"/opening", "must be a valid value"},
			{"/quoted", "must be an integer of 64 bits, written as a string"}}},
		{"rules of what can be read", `{"customer":"far too long","total":"much","lines":[{"quantity":1}]}`, []FieldError{
			{"/total", integer}, {"/customer", "must be at most 8 characters"}, {"/lines/0/sku", "is required"}}},
		{"no rule of what cannot be read", `{"customer":5}`, []FieldError{{"/customer", text}}},
		{"no rule about a list with an entry that cannot be read", `{"customer":"c","lines":[7]}`,
			[]FieldError{{"/lines/0", "must be an object"}}},
		{"no rule between fields", `{"customer":"c","from":"x","until":1,"phone":1,"channel":"web"}`,
			[]FieldError{{"/from", integer}, {"/phone", text}}},
		{"lists of another length", `{"customer":7,"pair":[1]}`,
			[]FieldError{{"/customer", text}, {"/pair", "must be an array of length 2"}}},
		{"up to what is not JSON", `{"customer":7,"total":"x","gift":yes}`, []FieldError{
			{"/customer", text}, {"/total", integer}, {"/gift", "is not valid JSON: invalid character 'y' at start of value"}}},
		{"up to a field that occurs twice", `{"customer":7,"customer":"c","total":"x"}`, []FieldError{
			{"/customer", text}, {"/customer", "is not valid JSON: a field occurs twice"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.Decode([]byte(c.payload))
			e, ok := errors.AsType[*Error](err)
			require.True(t, ok && e.Code == InvalidPayload, err)
			assert.Equal(t, c.fields, e.Fields)
			leaks(t, e)
		})
	}
}

// tree has no end, and members that tags write in other forms.
type tree struct {
	Left  *tree             `json:"left"`
	More  []*tree           `json:"more"`
	Grid  [2][2]int         `json:"grid"`
	By    map[int]string    `json:"by"`
	Names map[currency]int  `json:"names"`
	Any   int               `json:"any,case:ignore"`
	Rest  map[string]uint16 `json:",embed"`
}

func TestDecode_CustomTypes(t *testing.T) {
	const integer = "must be an integer of 64 bits"
	var s Activity[struct{}, None, tree]
	for payload, want := range map[string][]FieldError{
		`{"left":{"left":{"any":"x"},"any":"y"},"more":[null,{"any":[]}]}`: {
			{"/left/left/any", integer}, {"/left/any", integer}, {"/more/1/any", integer}},
		`{"ANY":"x","other":70000,"third":3}`: {{"/ANY", integer}, {"/other", "must be a non-negative integer of 16 bits"}},
		`{"grid":[[1,"x"],[1,2,3]],"any":1}`:  {{"/grid/0/1", integer}, {"/grid/1", "must be an array of length 2"}},
		`{"by":{"1":2,"x":"y","3":4},"any":"x"}`: {
			{"/by/1", "must be a string"}, {"/by/x", integer}, {"/by/3", "must be a string"}, {"/any", integer}},
		`{"names":{"EUR":1,"EURO":1,"USD":"x"},"left":7}`: {
			{"/names/EURO", "must be a valid string"}, {"/names/USD", integer}, {"/left", "must be an object"}},
	} {
		err := s.fits([]byte(payload))
		e, ok := errors.AsType[*Error](err)
		assert.Truef(t, ok && reflect.DeepEqual(e.Fields, want), "%s: %q", payload, e.Fields)
	}
}

func TestDecodeSaysHowManyMoreFieldsCannotBeRead(t *testing.T) {
	lines := strings.Repeat(`{"sku":1,"quantity":"x"},`, 150)
	_, err := orderStep(t).Decode([]byte(`{"customer":"far too long","lines":[` + lines + `{"sku":1}]}`))
	e, ok := errors.AsType[*Error](err)
	if !ok || len(e.Fields) != 101 || e.Fields[99].Pointer != "/lines/49/quantity" || e.Fields[100] != (FieldError{"", "and 201 more"}) {
		t.Errorf("got %v", err)
	}
}

func TestAResultNamesEveryFieldThatDoesNotFit(t *testing.T) {
	type result struct {
		Key    string `json:"key"`
		Amount int    `json:"amount"`
	}
	var a Activity[struct{}, None, result]
	e, ok := errors.AsType[*Error](a.fits([]byte(`{"key":1,"amount":"x"}`)))
	assert.Truef(t, ok && len(e.Fields) == 2, "got %v", e)
}

// What is said of a text has to be so: it is refused, for the reason that the
// decoder gives and others, each of which is at a place of the text.
func FuzzUnreadableFields(f *testing.F) {
	for _, seed := range []string{
		`{"customer":5,"total":"much"}`, `{"lines":[{"sku":1},7,null],"labels":{"a":1,"b/c":[]}}`, `{"pair":[1,2,3],"st.o[ck":{"":{"":1}}}`,
		`{"customer":5,"customer":6}`, `{"channel":1,"deep":{"a":1,"a":2}}`, `{"lines":[{"nope":[{}]}],"quoted":1,"opening":null}`,
		`{"left":{"more":[{"any":""}]},"grid":[[1],[]],"by":{"x":1},"names":{"":0},"x":-1}`, `{"a":`, `[]`, `{"total":1e400}{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		checkUnreadable[placeOrder](t, raw, jsonPayload)
		checkUnreadable[tree](t, raw, jsonPayload)
		checkUnreadable[tree](t, raw, jsonData)
		checkUnreadable[map[string][]orderLine](t, raw, jsonPayload)
	})
}

func checkUnreadable[P any](t *testing.T, raw []byte, reading json.Options) {
	var p P
	refusal := json.Unmarshal(raw, &p, reading)
	if refusal == nil {
		return
	}
	e := unreadableFields(raw, reflect.TypeFor[P](), reading, refusal)
	require.Truef(t, e != nil && e.Code == InvalidPayload && len(e.Fields) != 0 && len(e.Fields) <= maxFieldErrors+1, "%s: %v", raw, e)
	leaks(t, e)
	first := decodeError(refusal).Fields[0]
	if !slices.ContainsFunc(e.Fields, func(f FieldError) bool { return f.Pointer == first.Pointer }) && len(e.Fields) <= maxFieldErrors {
		t.Errorf("%s: %v is not in %v", raw, first, e.Fields)
	}
	var whole any
	if json.Unmarshal(raw, &whole) != nil {
		return
	}
	for _, f := range e.Fields {
		if f.Message == "is required" || strings.HasPrefix(f.Message, "and ") || len(f.Pointer) > maxPointer/2 {
			continue
		}
		assert.Falsef(t, !isPlace(whole, jsontext.Pointer(f.Pointer)) && !strings.HasPrefix(f.Message, "must be more than"),
			"%s has no %q: %s", raw, f.Pointer, f.Message)
	}
}

func isPlace(value any, pointer jsontext.Pointer) bool {
	for token := range pointer.Tokens() {
		switch v := value.(type) {
		case map[string]any:
			member, is := v[token]
			if !is {
				return false
			}
			value = member
		case []any:
			var i int
			if _, err := fmt.Sscan(token, &i); err != nil || i >= len(v) {
				return false
			}
			value = v[i]
		default:
			return false
		}
	}
	return true
}

// The cost of a refused payload is bounded: the place in an array is not stored for each value, and a limited number of values is examined.
func TestDecode_LargePayloadCost(t *testing.T) {
	type payload struct {
		N int                `json:"n"`
		M map[string][][]int `json:"m"`
	}
	for name, raw := range map[string]string{
		"a long name above many arrays": `{"n":"x","m":{"` + strings.Repeat("m", 200_000) + `":[` + strings.Repeat("[],", 5_000) + `[]]}}`,
		"many that cannot be read":      `{"n":"x","m":{"m":[` + strings.Repeat(`["x"],`, 100_000) + `[]]}}`,
	} {
		var p payload
		refusal := json.Unmarshal([]byte(raw), &p, jsonPayload)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		e := unreadableFields([]byte(raw), reflect.TypeFor[payload](), jsonPayload, refusal)
		runtime.ReadMemStats(&after)
		took := (after.TotalAlloc - before.TotalAlloc) >> 20
		assert.Truef(t, took <= 100, "%s: %d MiB for a text of %d KiB", name, took, len(raw)>>10)
		assert.Truef(t, len(e.Fields) != 0 && e.Fields[0].Pointer == "/n", "%s: %.200v", name, e)
	}
}
