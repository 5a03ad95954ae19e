package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api/wire"
)

func TestADisplayStringSaysAnyText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                     `%""`,
		"she called":           `%"she called"`,
		"füü":                  `%"f%c3%bc%c3%bc"`, // the example of RFC 9651, section 3.3.8, shortened
		" two\r\nlines\t":      `%" two%0d%0alines%09"`,
		`100% "sure" \o/`:      `%"100%25 %22sure%22 \o/"`,
		"\x00\x7f\U0001f980%2": `%"%00%7f%f0%9f%a6%80%252"`,
		"\xff\xc3":             `%"%ff%c3"`,
	} {
		got := wire.DisplayString(text)
		assert.Equalf(t, want, got, "%q", text)
		back, ok := wire.ParseDisplayString(got)
		assert.Truef(t, ok && back == text, "%s is read as %q, %v", got, back, ok)
	}
	long := strings.Repeat("é%\n", 100_000)
	back, ok := wire.ParseDisplayString(wire.DisplayString(long))
	assert.True(t, ok && back == long, "a long text is not read back")
}

func TestDisplayString_Invalid(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", `%`, `%"`, `"x"`, `x`, `%"x`, `%"x" `, `%"x";a`, `%"a"b"`, `%"é"`, "%\"a\tb\"", `%"%"`, `%"%4"`,
		`%"%c3%B c"`, `%"%C3%BC"`, `%"%g0"`, `%"%%"`, `%"% 0"`, `%"%+1"`} {
		got, ok := wire.ParseDisplayString(text)
		assert.Falsef(t, ok, "%s is read as %q", text, got)
	}
}

func FuzzADisplayStringHasOneForm(f *testing.F) {
	for _, text := range []string{`%""`, `%"a%0a"`, `%"%c3%bc"`, `%"%22`, `%"%252"`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if said, ok := wire.ParseDisplayString(text); ok {
			if again, ok := wire.ParseDisplayString(wire.DisplayString(said)); !ok || again != said {
				t.Errorf("%s says %q, and its own form %q", text, said, again)
			}
		}
	})
}
