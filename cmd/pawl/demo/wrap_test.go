package demo

import (
	"slices"
	"strings"
	"testing"
)

func TestJSONIsBrokenAfterCommasOnly(t *testing.T) {
	long := strings.Repeat("x", width-10)
	tests := []struct {
		text string
		want []string
	}{
		{``, []string{``}},
		{`{"a":1,"b":2}`, []string{`{"a":1,"b":2}`}},
		{`{"a":"` + long + `","b":"c"}`, []string{`{"a":"` + long + `",`, `"b":"c"}`}},
		{`{"a":1,"b":"` + long + `","c":3,"d":4}`, []string{`{"a":1,`, `"b":"` + long + `",`, `"c":3,"d":4}`}},
		{`{"a":"\",` + long + `,\\","b":2}`, []string{`{"a":"\",` + long + `,\\",`, `"b":2}`}},
		{`["` + long + long + `"]`, []string{`["` + long + long + `"]`}},
	}
	for _, tt := range tests {
		if got := wrap(tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n got %q\nwant %q", tt.text, got, tt.want)
		}
	}
}

func FuzzWrappingLosesNothing(f *testing.F) {
	f.Add(`{"a":"b,c","d":[1,2,3]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if got := strings.Join(wrap(text), ""); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
