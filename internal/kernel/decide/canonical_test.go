package decide

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/workflow"
)

func TestCanonicalWritesOneFormForOneMeaning(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, MaxDepth-1) + `{}` + strings.Repeat(`}`, MaxDepth-1)
	for _, tt := range []struct{ name, in, want string }{
		{"nothing is an empty object", "", `{}`},
		{"whitespace goes", " {\n\t\"a\" : [ 1 , 2 ]\r\n} ", `{"a":[1,2]}`},
		{"names are sorted by UTF-16", `{"\ud83d\ude00":1,"\ufb33":2,"b":3,"a":4}`, "{\"a\":4,\"b\":3,\"\U0001f600\":1,\"\ufb33\":2}"},
		{"inner names too", `{"b":{"d":1,"c":2}}`, `{"b":{"c":2,"d":1}}`},
		{"1.0 is 1", `{"a":1.0}`, `{"a":1}`},
		{"1e0 is 1", `{"a":1e0}`, `{"a":1}`},
		{"100e-2 is 1", `{"a":100e-2}`, `{"a":1}`},
		{"-0 is 0", `{"a":-0}`, `{"a":0}`},
		{"-0.0 is 0", `{"a":-0.0}`, `{"a":0}`},
		{"no power of 0 is out of range", `{"a":0e-400,"b":0.0e99999999999999999999}`, `{"a":0,"b":0}`},
		{"zeros at the end do not count", `{"a":0.100000000000000000000}`, `{"a":0.1}`},
		{"the smallest double", `{"a":5e-324}`, `{"a":5e-324}`},
		{"2^53 with a fraction", `{"a":9007199254740992.000}`, `{"a":9007199254740992}`},
		{"all digits of a double", `{"a":0.30000000000000004}`, `{"a":0.30000000000000004}`},
		{"the greatest double", `{"a":1.7976931348623157e308}`, `{"a":1.7976931348623157e+308}`},
		{"2^53-1", `{"a":9007199254740991}`, `{"a":9007199254740991}`},
		{"2^53", `{"a":-9007199254740992}`, `{"a":-9007199254740992}`},
		{"an integer that a double keeps", `{"a":1152921504606847000}`, `{"a":1152921504606847000}`},
		{"the same with an exponent", `{"a":1.152921504606847e18}`, `{"a":1152921504606847000}`},
		{"from 1e21 on with an exponent", `{"a":1000000000000000000000}`, `{"a":1e+21}`},
		{"digits in a string are text", `{"a":"9007199254740993"}`, `{"a":"9007199254740993"}`},
		{"a number's look in a string is text", `{"a":"1e400 -"}`, `{"a":"1e400 -"}`},
		{"braces in a string do not nest", `{"a":"` + strings.Repeat("[{", 200) + `"}`, `{"a":"` + strings.Repeat("[{", 200) + `"}`},
		{"unicode escapes", `{"\u0061":"\u00e9\u0041"}`, `{"a":"éA"}`},
		{"short escapes", `{"a":"\/\b\u0008\u001f"}`, `{"a":"/\b\b\u001f"}`},
		{"an escaped quote", `{"a":"\"1"}`, `{"a":"\"1"}`},
		{"an escaped backslash before u0000 is text", `{"a":"\\u0000"}`, `{"a":"\\u0000"}`},
		{"an escaped backslash at the end", `{"a":"\\","b":1}`, `{"a":"\\","b":1}`},
		{"as deep as allowed", deep, deep},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := []byte(tt.in)
			got, err := Canonical(in)
			require.NoError(t, err, reasons(err))
			assert.Equal(t, tt.want, string(got), got)
			assert.Equalf(t, tt.in, string(in), "the input was changed to %s", in)
			again, err := Canonical(got)
			assert.Truef(t, err == nil && bytes.Equal(again, got), "not a fixed point: %s, %v", again, err)
		})
	}
}

func TestCanonicalRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, pointer, message string }{
		{"an array", `[]`, "", "must be a JSON object"},
		{"null", `null`, "", "must be a JSON object"},
		{"a string", `"{}"`, "", "must be a JSON object"},
		{"a number", `1`, "", "must be a JSON object"},
		{"blanks", `  `, "", "not valid JSON"},
		{"two values", `{} {}`, "", "not valid JSON"},
		{"an end too early", `{"a":`, "/a", "not valid JSON"},
		{"an open string", `{"a":"x}`, "/a", "not valid JSON"},
		{"a backslash at the end", `{"a":"\`, "/a", "not valid JSON"},
		{"a sign alone", `{"a":-}`, "/a", "not valid JSON"},
		{"a leading zero", `{"a":01}`, "", "not valid JSON"},
		{"a point alone", `{"a":1.}`, "/a", "not valid JSON"},
		{"a comment", `{"a":1/**/}`, "", "not valid JSON"},
		{"a name twice", `{"a":1,"a":2}`, "/a", "a field occurs twice"},
		{"a name twice, once escaped", `{"a":1,"\u0061":2}`, "/a", "a field occurs twice"},
		{"an inner name twice", `{"x":[{"b":1,"b":2}]}`, "/x/0/b", "a field occurs twice"},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", "/a", "not valid JSON"},
		{"half a surrogate pair", `{"a":"\ud800"}`, "/a", "not valid JSON"},
		{"a NUL", `{"a":"\u0000"}`, "/a", "a NUL"},
		{"a NUL in a name", `{"x":{"\u0000":1}}`, "/x", "a NUL"},
		{"a NUL after an escaped backslash", `{"a":[0,"\\\u0000"]}`, "/a/1", "a NUL"},
		{"a NUL after an escaped quote", `{"a":"\"\u0000"}`, "/a", "a NUL"},
		{"a bare control character", "{\"a\":\"\x00\"}", "/a", "not valid JSON"},
		{"a number past the doubles", `{"a":1e400}`, "/a", "out of the range of a double"},
		{"one below them", `{"a":-1e400}`, "/a", "out of the range of a double"},
		{"one between them and 0", `{"a":{"b/c":[true,1e-400]}}`, "/a/b~1c/1", "out of the range of a double"},
		{"far out", `{"a":1e-99999999999999999999}`, "/a", "out of the range of a double"},
		{"a very long integer", `{"a":1` + strings.Repeat("0", 400) + `}`, "/a", "out of the range of a double"},
		{"2^53+1", `{"a":9007199254740993}`, "/a", "more digits than a double keeps"},
		{"2^53+1 with a fraction", `{"a":9007199254740993.0}`, "/a", "more digits than a double keeps"},
		{"2^53+1 with an exponent", `{"a":9007199254740993e0}`, "/a", "more digits than a double keeps"},
		{"2^53+1 by a negative exponent", `{"a":[{}],"b":90071992547409930e-1}`, "/b", "more digits than a double keeps"},
		{"-2^53-1", `{"a":-9007199254740993}`, "/a", "more digits than a double keeps"},
		{"2^60", `{"a":1152921504606846976}`, "/a", "more digits than a double keeps"},
		{"a fraction that would be rounded", `{"a":0.1000000000000000055}`, "/a", "more digits than a double keeps"},
		{"a bad number in what is no JSON before it", `{"a":tru,"b":1e400}`, "/a", "not valid JSON"},
		{"too deep", strings.Repeat(`{"a":`, MaxDepth) + `{}` + strings.Repeat(`}`, MaxDepth), "", "nests deeper than 64"},
		{"too deep, in arrays", `{"a":` + strings.Repeat(`[`, MaxDepth), "", "nests deeper than 64"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Canonical([]byte(tt.in))
			e, ok := errors.AsType[*workflow.Error](err)
			require.Truef(t, ok && e.Code == workflow.InvalidPayload && len(e.Fields) == 1,
				"got %s, %v; want invalid_payload with one field", got, err)
			f := e.Fields[0]
			assert.Truef(t, f.Pointer == tt.pointer && strings.Contains(f.Message, tt.message),
				"got %q at %q, want %q at %q", f.Message, f.Pointer, tt.message, tt.pointer)
		})
	}
}

// reasons shows the fields of a refusal, which Error leaves out.
func reasons(err error) any {
	if e, ok := errors.AsType[*workflow.Error](err); ok {
		return e.Fields
	}
	return err
}

// FuzzCanonical compares with a decoder of its own kind: what Canonical returns must mean what it was given, be its own canonical form,
// and keep every number to its last digit.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{``, `{}`, `[]`, ` {"b":1.0,"a":[true,null,"\u00e9\\u0000\""]}`, `{"a":1e400,"b":-0}`,
		`{"a":9007199254740993}`, `{"a":1e16}`, `{"\ud83d\ude00":{"x":[{}]}}`, `{"a":"\`, "{\"a\":\"\xff\"}", `{"a":12345678901234567890}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		kept := bytes.Clone(in)
		out, err := Canonical(in)
		require.Equal(t, string(kept), string(in), "the input was changed")
		if err != nil {
			wantCode(t, err, workflow.InvalidPayload)
			return
		}
		again, err := Canonical(out)
		require.Truef(t, err == nil && bytes.Equal(again, out), "%s is not a fixed point: %s, %v", out, again, reasons(err))
		if len(in) == 0 {
			in = []byte(`{}`)
		}
		var before, after map[string]any
		require.NoErrorf(t, json.Unmarshal(in, &before), "accepted %q, which a decoder refuses", in)
		require.NoErrorf(t, json.Unmarshal(out, &after), "wrote %s, which a decoder refuses", out)
		require.Equalf(t, after, before, "%q means, but its canonical form", in)
		require.Falsef(t, bytes.Contains(out, []byte{0}), "a NUL in %q", out)
	})
}

// FuzzNumbersAreKeptOrRefused is the promise that two payloads never look alike that are not: n/10^scale, spelled in several ways,
// keeps its value in all of them or is refused in all.
func FuzzNumbersAreKeptOrRefused(f *testing.F) {
	for _, n := range []int64{0, -1, 15, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1 << 60, -1 << 63, 1<<63 - 1, 1152921504606847000} {
		for _, scale := range []uint16{0, 1, 17, 400} {
			f.Add(n, scale)
		}
	}
	f.Fuzz(func(t *testing.T, n int64, scale uint16) {
		scale %= 500
		value := new(big.Rat).SetFrac(big.NewInt(n), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
		kept := 0
		spellings := []string{value.FloatString(int(scale)), value.FloatString(int(scale) + 1), fmt.Sprintf("%de-%d", n, scale),
			fmt.Sprintf("%d.00E-%d", n, scale)}
		for _, s := range spellings {
			got, err := Canonical([]byte(`{"n":` + s + `}`))
			if err != nil {
				wantCode(t, err, workflow.InvalidPayload)
				continue
			}
			kept++
			text := string(got[len(`{"n":`) : len(got)-1])
			after, ok := new(big.Rat).SetString(text)
			assert.Truef(t, ok && after.Cmp(value) == 0, "%s became %s", s, text)
		}
		assert.Falsef(t, kept != 0 && kept != len(spellings), "of %q %d are kept", spellings, kept)
		few := n > -1e15 && n < 1e15 && scale < 300
		assert.Falsef(t, kept == 0 && (few || scale == 0 && n >= -1<<53 && n <= 1<<53), "%s was refused", spellings[0])
	})
}
