package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func TestATimeToBeginIsOneWithinTenYears(t *testing.T) {
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
