package api

import (
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/workflow"
)

const someHash = ".0123456789abcdef0123456789abcdef"

func TestIfMatchIsOneVersion(t *testing.T) {
	for value, want := range map[string]int64{
		``: 0, `*`: 0, `"1"`: 1, ` "42" `: 42, `"9223372036854775807"`: 9223372036854775807, `W/"1"`: 1, `"3` + someHash + `"`: 3,
		`W/"3` + someHash + `"`: 3, `"3", "3` + someHash + `"`: 3, `"3",,`: 3,
		`1`: -1, `"0"`: -1, `"-1"`: -1, `"01"`: -1, `"+1"`: -1, `"1", "2"`: -1, `"1`: -1, `"`: -1, `w/"1"`: -1, `W/1`: -1, `*, "1"`: -1,
		`"9223372036854775808"`: -1, `"x"`: -1, `""`: -1, `"1.ab"`: -1, `"1" "1"`: -1, `,`: -1, `"1 "`: -1,
	} {
		got, err := ifMatch(requestWith("If-Match", value))
		if want < 0 {
			assert.Equalf(t, workflow.InvalidRequest, workflow.CodeOf(err), "If-Match %s: %d, %v; want it refused", value, got, err)
			continue
		}
		assert.Truef(t, err == nil && got == want, "If-Match %s: %d, %v; want %d", value, got, err, want)
	}
}

// If-None-Match compares weakly (RFC 9110, section 13.1.2).
func TestNotModified(t *testing.T) {
	for _, tt := range []struct {
		value  string
		status int
	}{
		{``, 200}, {`"3"`, 304}, {`"2"`, 200}, {`W/"3"`, 304},
		{`"2", "3"`, 304}, {`"2",W/"3" ,"4"`, 304}, {`*`, 304}, {`3`, 200},
		{`"a,"3""`, 200}, {`"2,"`, 200}, {`w/"3"`, 200},
	} {
		w := httptest.NewRecorder()
		sendTagged(w, requestWith(headerNoneMatch, tt.value), `"3"`, []byte("{}"))
		assert.Equalf(t, tt.status, w.Code, "If-None-Match %s", tt.value)
	}
}

func FuzzIfMatchNeverPassesOverAnExpectation(f *testing.F) {
	for _, s := range []string{`"1"`, `*`, `W/"1"`, `"1","2"`, ` `, "\t\"3\"", `"1","1` + someHash + `"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		version, err := ifMatch(requestWith("If-Match", s))
		trimmed := strings.Trim(s, " \t")
		assert.Falsef(t, err == nil && (version == 0) != (trimmed == "" || trimmed == "*"), "If-Match %q was taken for %d", s, version)
		assert.Falsef(t, err == nil && version != 0 && !strings.Contains(s, `"`+strconv.FormatInt(version, 10)),
			"If-Match %q was taken for %d", s, version)
	})
}
