package schemagen

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-playground/validator/v10"
)

// samples are strings on both sides of the rules' borders.
var samples = []string{
	"", "a", "Z", "ab", "aB3", "a b", "a-b", "ä", "0", "7", "007", "-1", "+1.5", "1.", ".5", "1e3", "0x1F", "0X", "1f", "G",
	"\x00", "\x7f", "\u0080", " ", "~", "\n", "a\n", "12345678", "+4930123456", "+0930123456", "4930123456",
	"1234567890123456", "EUR", "eur", "XXZ", "DE", "DEU", "XX", "276", "DEUTDEFF", "DEUTDEFF500", "DEUTDEFF50", "deutdeff",
	"localhost", "a.b-c.d", "-a.b", "a-.b", "a..b", "3com.com", strings.Repeat("a", 63), strings.Repeat("a", 64),
	strings.Repeat("0", 32), strings.Repeat("a", 32), strings.Repeat("A", 32), strings.Repeat("f", 64), strings.Repeat("g", 64),
	strings.Repeat("f", 96), strings.Repeat("f", 128), strings.Repeat("f", 127),
	"01ARZ3NDEKTSV4RRFFQ69G5FAV", "01arz3ndektsv4rrffq69g5fav", "81ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAU",
	"f47ac10b-58cc-4372-a567-0e02b2c3d479", "F47AC10B-58CC-4372-A567-0E02B2C3D479", "f47ac10b-58cc-4372-c567-0e02b2c3d479",
	"f47ac10b-58cc-5372-a567-0e02b2c3d479", "f47ac10b-58cc-7372-a567-0e02b2c3d479", "f47ac10b58cc4372a5670e02b2c3d479",
	"{f47ac10b-58cc-4372-a567-0e02b2c3d479}",
}

// A pattern accepts exactly what its rule accepts, except for codes that need a list.
func TestPatternsSayWhatTheRulesSay(t *testing.T) {
	v := validator.New()
	listed := []string{"iso4217", "iso3166_1_alpha2", "iso3166_1_alpha3"}
	for rule, s := range spellings {
		if s.pattern == "" {
			continue
		}
		re := regexp.MustCompile(s.pattern)
		matched := 0
		for _, sample := range samples {
			byRule, byPattern := v.Var(sample, rule) == nil, re.MatchString(sample)
			if byRule {
				matched++
			}
			looser := byPattern && !byRule && slices.Contains(listed, rule)
			if byRule != byPattern && !looser {
				t.Errorf("%s of %q: rule %t, pattern %t", rule, sample, byRule, byPattern)
			}
		}
		if matched == 0 || matched == len(samples) {
			t.Errorf("%s: the samples do not show a border", rule)
		}
	}
}
