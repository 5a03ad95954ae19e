package flags

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/app/usage"
)

func TestWhereATextIsNotJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1`:                    "X is not JSON: line 1, column 7: unexpected EOF",
		"{\n  \"ä\": é\n}":          "X is not JSON: line 2, column 8: invalid character 'é'",
		"{\"a\":1,\n\n \"b\" 2}":    "X is not JSON: line 3, column 6: invalid character '2'",
		`{"a":1} {`:                 "X is not JSON: line 1, column 9: invalid character '{'",
		"{'a':1}":                   "X is not JSON: line 1, column 2: invalid character '\\''",
		" \n":                       "X is empty, and not JSON",
		"":                          "X is empty, and not JSON",
		strings.Repeat("[", 100000): "X is not JSON: line 1, column 10001: exceeded max depth",
	} {
		_, err := JSON("X", []byte(text))
		_, is := errors.AsType[*usage.Error](err)
		assert.Truef(t, is && strings.HasPrefix(err.Error(), want), "%.20q: %v, want %s", text, err, want)
	}
	v, err := JSON("X", []byte(` {"a":1,"a":2} `))
	assert.Truef(t, err == nil && (string(v) == ` {"a":1,"a":2} ` || string(v) == `{"a":1,"a":2}`), "%q, %v", v, err)
}
