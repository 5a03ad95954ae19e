package workflow

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type cents int64

type currency string

func (c *currency) UnmarshalText(text []byte) error {
	if len(text) != 3 {
		return errors.New("secret reason of the type")
	}
	*c = currency(text)
	return nil
}

type opening struct{ Hour int }

func (o *opening) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" || len(raw) > 2 {
		return errors.New("secret reason of the type")
	}
	o.Hour = len(raw)
	return nil
}

type orderLine struct {
	SKU      string  `json:"sku" validate:"required"`
	Quantity int     `json:"quantity" validate:"gt=0"`
	Price    float32 `json:"price"`
}

type placeOrder struct {
	Customer string               `json:"customer" validate:"required,max=8"`
	Total    cents                `json:"total" validate:"gte=0"`
	Currency currency             `json:"currency"`
	Lines    []orderLine          `json:"lines" validate:"max=200,dive"`
	Labels   map[string]string    `json:"labels" validate:"dive,max=3"`
	Stock    map[string]orderLine `json:"st.o[ck" validate:"dive"`
	At       time.Time            `json:"at"`
	ID       uuid.UUID            `json:"id"`
	Small    uint8                `json:"small"`
	Gift     bool                 `json:"gift"`
	Bytes    []byte               `json:"bytes"`
	Pair     [2]int               `json:"pair"`
	Quoted   int64                `json:"quoted,string"`
	Opening  opening              `json:"opening"`
	Deep     any                  `json:"deep"`
	From     int                  `json:"from"`
	Until    int                  `json:"until" validate:"omitempty,gtfield=From"`
	Slash    string               `json:"a/b~c" validate:"omitempty,oneof=x 'y z'"`
	Base2
}

type Base2 struct {
	Channel string `json:"channel" validate:"omitempty,alpha"`
	Phone   string `json:"phone" validate:"required_with=Channel"`
}

func orderStep(t testing.TB) *Step { return startWith[placeOrder](t) }

func TestDecodeSaysWhatIsWrongAndWhere(t *testing.T) {
	const ok = `{"customer":"c"`
	cases := []struct {
		name    string
		payload string
		fields  []FieldError
	}{
		{"empty", ``, []FieldError{{"/customer", "is required"}}},
		{"white space", " \n", []FieldError{{"/customer", "is required"}}},
		{"null", `null`, []FieldError{{"", "must be a JSON object"}}},
		{"an array", `[{}]`, []FieldError{{"", "must be a JSON object"}}},
		{"a string", `"{}"`, []FieldError{{"", "must be a JSON object"}}},
		{"not JSON", `{customer`, []FieldError{{"", "is not valid JSON: invalid character 'c' at start of value"}}},
		{"cut off", `{"customer":"c"`, []FieldError{{"", "is not valid JSON: it ends too early"}}},
		{"two values", ok + `}{}`, []FieldError{{"", "is not valid JSON: invalid character '{' after top-level value"}}},
		{"a comma too many", ok + `,}`, []FieldError{{"", "is not valid JSON: invalid character ',' at start of value"}}},
		{"an unknown field", ok + `,"nope":1}`, []FieldError{{"/nope", "unknown field"}}},
		{"an unknown field inside", ok + `,"lines":[{"sku":"s","quantity":1,"nope":1}]}`, []FieldError{{"/lines/0/nope", "unknown field"}}},
		{"another case", ok + `,"Total":1}`, []FieldError{{"/Total", "unknown field"}}},
		{"a field twice", ok + `,"total":1,"total":1}`, []FieldError{{"/total", "is not valid JSON: a field occurs twice"}}},
		{"a member twice", ok + `,"labels":{"x":"a","x":"b"}}`, []FieldError{{"/labels/x", "is not valid JSON: a field occurs twice"}}},
		{"invalid UTF-8", ok + ",\"currency\":\"\xff\"}", []FieldError{{"/currency", "is not valid JSON: invalid UTF-8"}}},
		{"half a surrogate", ok + `,"labels":{"\ud800":"x"}}`, []FieldError{{"/labels", "is not valid JSON: a string or a number is malformed"}}},
		{"a number out of range", ok + `,"lines":[{"sku":"s","quantity":1,"price":1e400}]}`,
			[]FieldError{{"/lines/0/price", "must be a number of 32 bits"}}},
		{"too deep", ok + `,"deep":` + strings.Repeat("[", 11000) + strings.Repeat("]", 11000) + `}`,
			[]FieldError{{"/deep" + strings.Repeat("/0", 253), "is not valid JSON: it nests too deep"}}},
		{"an integer out of range", ok + `,"small":256}`, []FieldError{{"/small", "must be a non-negative integer of 8 bits"}}},
		{"a text as an integer", ok + `,"total":"1"}`, []FieldError{{"/total", "must be an integer of 64 bits"}}},
		{"a fraction as an integer", ok + `,"total":1.5}`, []FieldError{{"/total", "must be an integer of 64 bits"}}},
		{"an integer as a text", `{"customer":7}`, []FieldError{{"/customer", "must be a string"}}},
		{"a text as a boolean", ok + `,"gift":"yes"}`, []FieldError{{"/gift", "must be a boolean"}}},
		{"an object as a list", ok + `,"lines":{}}`, []FieldError{{"/lines", "must be an array"}}},
		{"a list as an object", ok + `,"labels":[]}`, []FieldError{{"/labels", "must be an object"}}},
		{"a text as an entry", ok + `,"lines":[{"sku":"s","quantity":1},"x"]}`, []FieldError{{"/lines/1", "must be an object"}}},
		{"a list too short", ok + `,"pair":[1]}`, []FieldError{{"/pair", "must be an array of length 2"}}},
		{"not a time", ok + `,"at":"today"}`, []FieldError{{"/at", "must be an RFC 3339 time"}}},
		{"not a UUID", ok + `,"id":"7"}`, []FieldError{{"/id", "must be a UUID"}}},
		{"not base64", ok + `,"bytes":"?"}`, []FieldError{{"/bytes", "must be a base64 string"}}},
		{"a number that should be quoted", ok + `,"quoted":7}`, []FieldError{{"/quoted", "must be an integer of 64 bits, written as a string"}}},
		{"a text that its type refuses", ok + `,"currency":"EURO"}`, []FieldError{{"/currency", "must be a valid string"}}},
		{"a value that its type refuses", ok + `,"opening":"late"}`, []FieldError{{"/opening", "must be a valid value"}}},
		{"a rule", `{"customer":"far too long"}`, []FieldError{{"/customer", "must be at most 8 characters"}}},
		{"several rules", `{"total":-1,"lines":[{"sku":"s","quantity":1},{}]}`, []FieldError{
			{"/customer", "is required"}, {"/total", "must be at least 0"},
			{"/lines/1/sku", "is required"}, {"/lines/1/quantity", "must be more than 0"}}},
		{"a key with dots and brackets", ok + `,"labels":{"a.b[0]":"long"}}`, []FieldError{{"/labels/a.b[0]", "must be at most 3 characters"}}},
		{"a key with a slash and a tilde", ok + `,"labels":{"a/b~c":"long"}}`, []FieldError{{"/labels/a~1b~0c", "must be at most 3 characters"}}},
		{"a name with dots and brackets", ok + `,"st.o[ck":{"k.1":{"sku":"s"}}}`, []FieldError{{"/st.o[ck/k.1/quantity", "must be more than 0"}}},
		{"a name with a slash and a tilde", ok + `,"a/b~c":"z"}`, []FieldError{{"/a~1b~0c", "must be one of: x, y z"}}},
		{"an embedded struct", ok + `,"channel":"web1","phone":"1"}`, []FieldError{{"/channel", "must consist of letters a-z"}}},
		{"a rule between fields", ok + `,"from":2,"until":1,"channel":"web"}`, []FieldError{
			{"/until", "must be more than from"}, {"/phone", "is required with channel"}}},
		{"a huge name", ok + `,"labels":{"` + strings.Repeat("k", 4000) + `":"long"}}`,
			[]FieldError{{"/labels", "must be at most 3 characters"}}},
		{"a huge unknown name", ok + `,"` + strings.Repeat("k", 4000) + `":1}`, []FieldError{{"", "unknown field"}}},
	}
	s := orderStep(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := s.Decode([]byte(c.payload))
			e, ok := errors.AsType[*Error](err)
			require.Truef(t, ok && e.Code == InvalidPayload && e.Message == "the payload is not valid", "got %v, %v", p, err)
			assert.Equal(t, c.fields, e.Fields)
			leaks(t, e)
			assert.True(t, p.BusinessKey() == "" && p.value == nil, "a payload came out all the same")
		})
	}
}

// insides are what an answer must not show: Go's types and packages, and what a
// type says to its own log.
var insides = regexp.MustCompile(`(?i)workflow\.|placeOrder|orderLine|cents|uint8|int64|float|struct|go |golang|secret|Base2|Customer\b`)

func leaks(t *testing.T, e *Error) {
	t.Helper()
	for _, f := range e.Fields {
		assert.Equalf(t, "", insides.FindString(f.Message), "in %q", f.Message)
	}
	assert.NoError(t, e.Cause, "a cause")
}

func TestDecodeTakesWhatFits(t *testing.T) {
	s := orderStep(t)
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf(`{"sku":"s-%d","quantity":1}`, i))
	}
	for _, payload := range []string{
		`{"customer":"c"}`, "\t{ \"customer\" : \"äöüäöüäö\" }\n",
		`{"customer":"c","currency":null,"lines":null,"labels":null,"at":null,"id":null,"gift":null,"pair":null,"quoted":null}`,
		`{"customer":"c","lines":[` + strings.Join(lines, ",") + `]}`,
		`{"customer":"c","opening":""}`,
		`{"customer":"c","deep":{"any":[1,"x",null]},"quoted":"9007199254740993"}`,
	} {
		_, err := s.Decode([]byte(payload))
		assert.NoErrorf(t, err, "%.80s", payload)
	}
}

func TestDecodeBoundsItsAnswer(t *testing.T) {
	var lines []string
	for range 150 {
		lines = append(lines, `{}`)
	}
	_, err := orderStep(t).Decode([]byte(`{"customer":"c","lines":[` + strings.Join(lines, ",") + `]}`))
	e, ok := errors.AsType[*Error](err)
	require.Truef(t, ok && len(e.Fields) == 101, "got %v", err)
	assert.Equal(t, (FieldError{"", "and 200 more"}), e.Fields[100], "the last")
}

func TestDecodeNamesTheBusinessKey(t *testing.T) {
	key := ""
	w, err := Define("w", 1,
		Start("start", "done", func(*Call, *struct{}, namedPayload) error { return nil }).
			BusinessKey(func(p namedPayload) string { return key + p.Name }),
	).Final("done").Build()
	require.NoError(t, err)
	s := w.Steps[0]
	p, err := s.Decode([]byte(`{"name":"c-1:k-9"}`))
	assert.Truef(t, err == nil && p.BusinessKey() == "c-1:k-9", "%q, %v", p.BusinessKey(), err)
	_, err = s.Decode([]byte(`{"name":"` + strings.Repeat("k", MaxBusinessKey) + `"}`))
	assert.NoError(t, err)
	for payload, message := range map[string]string{
		`{}`: "the business key that this payload names is empty",
		`{"name":"` + strings.Repeat("k", MaxBusinessKey+1) + `"}`: "the business key that this payload names is longer than 255 bytes",
		`{"name":"a\u0000b"}`: "the business key that this payload names contains a NUL",
	} {
		_, err := s.Decode([]byte(payload))
		e, ok := errors.AsType[*Error](err)
		assert.Truef(t, ok && e.Code == InvalidPayload && len(e.Fields) == 1 && e.Fields[0].Message == message,
			"%.40s: %v", payload, err)
	}
	key = "\xff"
	_, err = s.Decode([]byte(`{"name":"a"}`))
	assert.Equalf(t, InvalidPayload, CodeOf(err), "a key that is not UTF-8: %v", err)
}

type moody struct{ Mood int }

func (moody) ValidatorValue() any { panic("secret") }

// A type's own method may fail on a payload; the process may not.
func TestDecodeSurvivesMethodsThatPanic(t *testing.T) {
	v := reflect.ValueOf(struct {
		Value moody `validate:"required"`
	}{})
	err := validateStruct(v.Interface())
	assert.Truef(t, CodeOf(err) == Internal && !strings.Contains(err.(*Error).Message, "secret"), "got %v", err)
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"customer":"c"}`, `{"customer":"c","lines":[{"sku":"s","quantity":1,"price":0.1}]}`,
		`{"customer":"c","labels":{"a.b":"c]"},"st.o[ck":{"\u0000":{}}}`, `{"customer":"c","deep":[[[[{}]]]]}`,
		`{"customer":"c","at":"2026-01-02T03:04:05Z","id":"01936b0e-0000-7000-8000-000000000001"}`,
		`{"customer":"c","quoted":"1","opening":"","bytes":"aGk=","pair":[1,2],"small":255,"until":3}`,
		"{\"customer\":\"\xff\"}", `{"customer":1e400}`, `{"a":`, `{"customer":"c","customer":"c"}`,
	} {
		f.Add([]byte(seed))
	}
	s := orderStep(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := s.Decode(raw)
		if err == nil {
			if _, ok := p.value.(placeOrder); !ok {
				t.Fatalf("the payload is a %T", p.value)
			}
			return
		}
		e, ok := errors.AsType[*Error](err)
		require.Truef(t, ok && e.Code == InvalidPayload && len(e.Fields) != 0, "%T: %v", err, err)
		for _, field := range e.Fields {
			assert.Truef(t, (field.Pointer == "" || field.Pointer[0] == '/') && len(field.Pointer) <= maxPointer,
				"pointer %q", field.Pointer)
		}
		leaks(t, e)
	})
}
