package wire

import (
	"encoding/hex"
	"strings"
)

// DisplayString is a text as the value of a header: a Display String (RFC 9651, section 4.1.11). What is not UTF-8 stays so.
func DisplayString(s string) string {
	b := append(make([]byte, 0, len(s)+3), `%"`...)
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' || c == '"' {
			b = hex.AppendEncode(append(b, '%'), []byte{c})
		} else {
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

// ParseDisplayString decodes a Display String (section 4.2.10); false if the text is not one. It does not check that the result is UTF-8;
// its user does.
func ParseDisplayString(s string) (string, bool) {
	s, opened := strings.CutPrefix(s, `%"`)
	s, closed := strings.CutSuffix(s, `"`)
	if !opened || !closed {
		return "", false
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '%' && i+2 < len(s) && strings.ToLower(s[i+1:i+3]) == s[i+1:i+3]:
			one, err := hex.DecodeString(s[i+1 : i+3])
			if err != nil {
				return "", false
			}
			b, i = append(b, one...), i+2
		case c < ' ' || c > '~' || c == '%' || c == '"':
			return "", false
		default:
			b = append(b, c)
		}
	}
	return string(b), true
}
