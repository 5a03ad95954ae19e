package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/workflow"
)

func requestWith(header string, values ...string) *http.Request {
	r := &http.Request{Header: http.Header{}}
	for _, v := range values {
		r.Header.Add(header, v)
	}
	return r
}

func TestQuotedAndBareKeysAreTheSameKey(t *testing.T) {
	for _, c := range []struct {
		header []string
		key    string
		given  bool
		ok     bool
	}{
		{nil, "", false, true},
		{[]string{`checkout-7`}, "checkout-7", true, true},
		{[]string{`"checkout-7"`}, "checkout-7", true, true},
		{[]string{"  \"checkout-7\"\t"}, "checkout-7", true, true},
		{[]string{`"a\"b\\c"`}, `a"b\c`, true, true},
		{[]string{`a"b\c`}, `a"b\c`, true, true},
		{[]string{``}, "", true, true},
		{[]string{`""`}, "", true, true},
		{[]string{`"open`}, "", true, false},
		{[]string{`"`}, "", true, false},
		{[]string{`"a";p=1`}, "", true, false},
		{[]string{`"a" "b"`}, "", true, false},
		{[]string{`"a\n"`}, "", true, false},
		{[]string{`"a\`}, "", true, false},
		{[]string{"\"ä\""}, "", true, false}, // RFC 8941 strings are ASCII
		{[]string{"ä"}, "ä", true, true},
		{[]string{"a", "b"}, "", true, false},
		{[]string{"a1, a1"}, "", true, false},
		{[]string{"a1,"}, "", true, false},
		{[]string{`"a1", "a1"`}, "", true, false},
		{[]string{`"a1, a1"`}, "a1, a1", true, true},
	} {
		key, given, err := keyHeader(requestWith(headerKey, c.header...), headerKey, workflow.KeyInvalid)
		switch {
		case c.ok && err != nil:
			t.Errorf("%q: %v", c.header, err)
		case !c.ok && workflow.CodeOf(err) != workflow.KeyInvalid:
			t.Errorf("%q: error %v, want %s", c.header, err, workflow.KeyInvalid)
		case given != c.given || c.ok && key != c.key:
			t.Errorf("%q: %q, given %t; want %q, %t", c.header, key, given, c.key, c.given)
		}
	}
}

func FuzzUnquoteIsTheInverseOfQuoting(f *testing.F) {
	for _, s := range []string{"", `a`, `"`, `\`, `a"b\c`, `"quoted"`, `"a\"b"`, `"a" b`, "\"\x00\"", `"a\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, ok := unquote(s); ok && !strings.HasPrefix(s, `"`) && got != s {
			t.Errorf("the bare %q became %q", s, got)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
		got, ok := unquote(quoted)
		printable := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
		assert.Truef(t, ok == printable && (!ok || got == s), "%q quoted is %q, read as %q, %t", s, quoted, got, ok)
	})
}
