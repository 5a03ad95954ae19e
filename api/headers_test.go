package api

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

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
		if ok != printable || ok && got != s {
			t.Errorf("%q quoted is %q, read as %q, %t", s, quoted, got, ok)
		}
	})
}

func TestIfMatchIsOneVersion(t *testing.T) {
	for value, want := range map[string]int64{
		``: 0, `*`: 0, `"1"`: 1, ` "42" `: 42, `"9223372036854775807"`: 9223372036854775807,
		`1`: -1, `"0"`: -1, `"-1"`: -1, `"01"`: -1, `"+1"`: -1, `W/"1"`: -1, `"1", "2"`: -1, `"1`: -1, `"`: -1,
		`"9223372036854775808"`: -1, `"x"`: -1, `""`: -1,
	} {
		got, err := ifMatch(requestWith("If-Match", value))
		if want < 0 {
			if workflow.CodeOf(err) != workflow.InvalidRequest {
				t.Errorf("If-Match %s: %d, %v; want it refused", value, got, err)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("If-Match %s: %d, %v; want %d", value, got, err, want)
		}
	}
}

func TestNotModified(t *testing.T) {
	for value, want := range map[string]bool{
		``: false, `"3"`: true, `"2"`: false, `W/"3"`: true, `"2", "3"`: true, `*`: true, `3`: false,
	} {
		if got := notModified(requestWith("If-None-Match", value), `"3"`); got != want {
			t.Errorf("If-None-Match %s: %t, want %t", value, got, want)
		}
	}
}

func FuzzIfMatchNeverPassesOverAnExpectation(f *testing.F) {
	for _, s := range []string{`"1"`, `*`, `W/"1"`, `"1","2"`, ` `, "\t\"3\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		version, err := ifMatch(requestWith("If-Match", s))
		if trimmed := strings.TrimSpace(s); err == nil && trimmed != "" && trimmed != "*" &&
			trimmed != `"`+strconv.FormatInt(version, 10)+`"` {
			t.Errorf("If-Match %q was taken for %d", s, version)
		}
	})
}
