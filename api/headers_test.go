package api

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
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

func TestAcceptPrefersByWeightAndThenByOffer(t *testing.T) {
	for header, want := range map[string]string{
		"":                  mediaJSON,
		"*/*":               mediaJSON,
		"text/event-stream": mediaEventStream,
		"TEXT/Event-Stream": mediaEventStream,
		"application/json;q=0.5, text/event-stream": mediaEventStream,
		"text/event-stream;q=0.5, application/json": mediaJSON,
		"text/*":                    mediaEventStream,
		"text/html, */*;q=0.1":      mediaJSON,
		"application/json;q=0, */*": mediaEventStream,
		"text/html":                 "",
		"application/json;q=0, text/event-stream;q=0": "",
		"application/json;q=7":                        "",
		"application/json;q=NaN":                      "",
		"application/json;v=1;q=0.2, text/*;q=0.3":    mediaEventStream,
		",;,": "",
	} {
		assert.Equalf(t, want, accepted(requestWith("Accept", header), mediaJSON, mediaEventStream), "Accept %q", header)
	}
}

func TestContentType(t *testing.T) {
	for value, want := range map[string]string{
		"application/json": mediaJSON, "Application/JSON; charset=UTF-8": mediaJSON, "application/x-ndjson": mediaNDJSON,
		"": "", "text/plain": "", "application/json; charset=latin1": "", "application/x-www-form-urlencoded": "",
		"multipart/form-data; boundary=x": "", "application/json, text/plain": "", "json": "", "application/jsonp": "",
	} {
		got, err := contentType(requestWith("Content-Type", value), mediaJSON, mediaNDJSON)
		assert.Truef(t, got == want && (want == "") == errors.Is(err, &workflow.Error{Code: workflow.UnsupportedMedia}),
			"Content-Type %q: %q, %v; want %q", value, got, err, want)
	}
	_, err := contentType(requestWith("Content-Type", mediaNDJSON), mediaJSON)
	assert.Error(t, err, "NDJSON was taken for a single command")
}

func TestPreferWait(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 0, "wait=5": 5 * time.Second, "WAIT = 5": 5 * time.Second, `wait="5"`: 5 * time.Second,
		"respond-async, wait=7": 7 * time.Second, "wait=7;x=y": 7 * time.Second, "wait=3600": time.Minute,
		"wait=-1": 0, "wait=abc": 0, "wait": 0, "wait=1.5": 0, "wait=99999999999999999999": 0,
		"wait=abc, wait=4": 4 * time.Second, "wait=0": 0,
	} {
		assert.Equalf(t, want, preferredWait(requestWith("Prefer", value), time.Minute), "Prefer %q", value)
	}
}

func TestPreferRespondAsync(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "respond-async": true, "Respond-Async": true, "wait=5, respond-async": true, "respond-async;q=1": true,
		"wait=5": false, "respond": false, "x=respond-async": false,
	} {
		assert.Equalf(t, want, prefersAsync(requestWith("Prefer", value)), "Prefer %q", value)
	}
}

func FuzzPreferWaitIsBounded(f *testing.F) {
	for _, s := range []string{"wait=5", "respond-async;wait=1,wait=", `wait="`, "=,;", "wait=18446744073709551615"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := preferredWait(requestWith("Prefer", s), time.Minute)
		assert.Truef(t, got >= 0 && got <= time.Minute, "Prefer %q: %v", s, got)
	})
}

func TestRetentionTerms(t *testing.T) {
	for value, want := range map[string]time.Duration{"1": time.Second, "86400": 24 * time.Hour, "9223372036": 9223372036 * time.Second,
		"": 0, "0": 0, "-1": 0, "+5": 0, "1.5": 0, "1h": 0, "9223372037": 0, "forever": workflow.Forever, "Forever": 0} {
		for _, header := range []string{headerReplayFor, headerTombstoneFor} {
			var cmd transitions.Command
			err := termsOf(requestWith(header, value), &cmd)
			if want == 0 || want == workflow.Forever && header == headerReplayFor {
				assert.Equalf(t, workflow.InvalidRequest, workflow.CodeOf(err), "%s: %q", header, value)
				continue
			}
			assert.Truef(t, err == nil && max(cmd.Replay, cmd.Tombstone) == want, "%s: %q: %+v, %v", header, value, cmd, err)
		}
	}
	assert.Error(t, termsOf(requestWith(headerReplayFor, "1", "1"), &transitions.Command{}))
	var cmd transitions.Command
	err := termsOfItem(&wire.BulkCommand{ReplayFor: jsontext.Value("60"), TombstoneFor: jsontext.Value(`"forever"`)}, &cmd)
	assert.Truef(t, err == nil && cmd.Replay == time.Minute && cmd.Tombstone == workflow.Forever, "got %+v, %v", cmd, err)
	for _, value := range []string{`"60"`, `1.5`, `null`, `true`, `{}`, `""`} {
		for _, in := range []wire.BulkCommand{{ReplayFor: jsontext.Value(value)}, {TombstoneFor: jsontext.Value(value)}} {
			err := termsOfItem(&in, &transitions.Command{})
			assert.Equalf(t, workflow.InvalidRequest, workflow.CodeOf(err), "%+v: got %v", in, err)
		}
	}
}

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func TestNotBefore(t *testing.T) {
	for value, want := range map[string]string{
		"2026-06-02T00:00:00Z":              "2026-06-02T00:00:00Z",
		"2026-06-02T02:00:00+02:00":         "2026-06-02T00:00:00Z",
		"2026-06-02T00:00:00.1234567Z":      "2026-06-02T00:00:00.123456Z", // as precisely as it is stored
		"2026-05-31T00:00:00Z":              "2026-05-31T00:00:00Z",        // late is late
		"2036-06-01T12:00:00Z":              "2036-06-01T12:00:00Z",
		"2036-06-01T12:00:01Z":              "",
		"2016-06-01T11:59:59Z":              "",
		"0001-01-01T00:00:00Z":              "",
		"9999-12-31T23:59:59Z":              "",
		"10000-01-01T00:00:00Z":             "",
		"":                                  "",
		"tomorrow":                          "",
		"1780000000":                        "",
		"2026-06-02":                        "",
		"2026-06-02T00:00:00":               "",
		"2026-06-02 00:00:00Z":              "",
		"2026-02-30T00:00:00Z":              "",
		"2026-06-02T24:00:00Z":              "",
		"2026-06-02T00:00:00Z ":             "",
		"2026-06-02T00:00:00Z\x00":          "",
		"2026-06-02T00:00:00\xff":           "",
		"Tue, 02 Jun 2026 00:00:00 GMT":     "",
		"2026-06-02T00:00:00.Z":             "",
		"2026-06-02T00:00:00+99:99":         "",
		"2026-06-02T00:00:00Z, 2026-06-03T": "",
	} {
		at, err := scheduled("it", value, noon)
		switch {
		case want == "" && workflow.CodeOf(err) != workflow.InvalidRequest:
			t.Errorf("%q: %v, %v; want it refused", value, at, err)
		case want != "" && (err != nil || at.Format(time.RFC3339Nano) != want):
			t.Errorf("%q: %v, %v; want %s", value, at, err, want)
		}
	}
	var cmd transitions.Command
	err := termsOf(requestWith(headerNotBefore), &cmd)
	assert.Truef(t, err == nil && cmd.NotBefore.IsZero(), "without a header: %v, %v", cmd.NotBefore, err)
	for _, values := range [][]string{{""}, {" "}, {noon.Format(time.RFC3339), noon.Format(time.RFC3339)}} {
		err := termsOf(requestWith(headerNotBefore, values...), &cmd)
		assert.Equalf(t, workflow.InvalidRequest, workflow.CodeOf(err), "%q: %v, %v; want it refused", values, cmd.NotBefore, err)
	}
}

func FuzzATimeToBeginIsWithinTenYears(f *testing.F) {
	for _, s := range []string{"2026-06-02T00:00:00Z", "2036-06-01T12:00:00.999999999+23:59", "0000-00-00T00:00:00Z", "2026-06-02t00:00:00z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, err := scheduled("it", s, noon)
		if err == nil &&
			(at.Before(noon.AddDate(-10, 0, -1)) || at.After(noon.AddDate(10, 0, 1)) || at.Nanosecond()%1000 != 0 || at.Location() != time.UTC) {
			t.Errorf("%q was taken for %v", s, at)
		}
	})
}
