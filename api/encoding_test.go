package api

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
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

func FuzzArrayAndLinesSplitAlike(f *testing.F) {
	for _, s := range []string{
		`{"a":1}`, `1 2`, `{"a":1,"a":2}`, "\"\xff\"", `[`, `]`, `{"a":[{}]}` + "\n" + `null`, "\n\n", `"a` + "\n" + `b"`, `1e400`, `,`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		byLine, err := splitLines(lines, 100)
		if err != nil {
			require.Equalf(t, workflow.TooLarge, workflow.CodeOf(err), "%q: %v", lines, err)
			return
		}
		for _, line := range byLine {
			v := jsontext.Value(bytes.Clone(line))
			if !v.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
				return // a line that is not JSON makes an array that is none
			}
		}
		array := append(append([]byte{'['}, bytes.Join(byLine, []byte(","))...), ']')
		byArray, err := splitArray(array, 100)
		require.Truef(t, err == nil && len(byArray) == len(byLine),
			"%q: %d lines, %d elements, %v", lines, len(byLine), len(byArray), err)
		for i := range byLine {
			assert.Equalf(t, string(byArray[i]), string(byLine[i]), "item %d is the line and the element", i)
		}
	})
}

func FuzzCommandOfABulkRequest(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `{"workflow":"w","transition":"t","key":"k","payload":{"a":1},"if_version":3}`, `{"instance":"x"}`,
		`{"workflow":"w","scope":""}`, `{"workflow":"w","if_version":-1}`, `{"workflow":"w","payload":[[[[]]]]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, item []byte) {
		cmd, err := commandOf(item)
		if err != nil {
			code := workflow.CodeOf(err)
			assert.Equalf(t, 400, code.Info().Status, "%q: %v", item, err)
			p := transitions.ProblemOf(err)
			assert.Truef(t, len(p.JSON()) <= 2000, "%q: the problem document has %d bytes", item, len(p.JSON()))
			return
		}
		assert.Truef(t, cmd.IfVersion >= 0 && len(cmd.Payload) <= len(item), "%q: %+v", item, cmd)
	})
}

func TestNextPart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ all, submitted, bytes, want int }{
		{1000, 0, 0, 16},          // the size of answers is not known
		{5, 0, 0, 5},              // no more than there are
		{1000, 16, 16 << 10, 984}, // answers of 1 KiB: all the rest have less than 1 MiB
		{5000, 16, 16 << 10, 1024},
		{1000, 16, 1 << 20, 16},   // answers of 64 KiB
		{1000, 500, 32 << 20, 15}, // and still, after 32 MiB of them
		{1000, 16, 32 << 20, 1},   // answers of 2 MiB
		{20, 16, 16, 4},
		{1000, 16, 0, 984},
	} {
		assert.Equalf(t, c.want, nextPart(c.all, c.submitted, c.bytes), "%d of %d have %d bytes", c.submitted, c.all, c.bytes)
	}
}

func TestWhenToLookAgainAtACommandInFlight(t *testing.T) {
	for name, c := range map[string]struct {
		record transitions.Record
		want   string
	}{
		"worked on":      {transitions.Record{Status: transitions.Processing, LockedUntil: noon.Add(time.Minute)}, "1"},
		"due":            {transitions.Record{Status: transitions.Pending, RunAt: noon.Add(-time.Second)}, "1"},
		"soon":           {transitions.Record{Status: transitions.FailedRetryable, RunAt: noon.Add(6500 * time.Millisecond)}, "7"},
		"in a year":      {transitions.Record{Status: transitions.Pending, RunAt: noon.AddDate(1, 0, 0)}, "60"},
		"by an operator": {transitions.Record{Status: transitions.FailedRetryable, Stuck: "unknown_outcome"}, "60"},
	} {
		assert.Equalf(t, c.want, seconds(lookAgain(&c.record, noon)), "%s seconds", name)
	}
}

func FuzzTheAddressOfACommandLeadsToIt(f *testing.F) {
	for _, s := range [][2]string{
		{"order:pay", "k"}, {"a/b", "c/d"}, {".", ".."}, {"..", "."}, {"%2F", "%"}, {"a b", "?x=1#y"}, {"ä", "\xff"}, {"//", "/"}, {"a", "b/"},
		{";", "+&="},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, scope, key string) {
		if scope == "" || scope == "/" || key == "" {
			return
		}
		mux := http.NewServeMux()
		found := false
		mux.HandleFunc("GET /v1/commands/{scope}/{key...}", func(_ http.ResponseWriter, r *http.Request) {
			found = r.PathValue("scope") == scope && r.PathValue("key") == key
		})
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, commandPath(scope, key), nil))
		assert.Truef(t, found, "%q, %q: %s leads elsewhere", scope, key, commandPath(scope, key))
	})
}
