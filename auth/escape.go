package auth

import (
	"errors"
	"net/url"
	"strings"
)

const hexadecimal = "0123456789ABCDEF"

// escape writes what is not unreserved in RFC 3986, section 2.3, as "%" and two digits.
func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if isLetter(c) || strings.IndexByte("0123456789-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', hexadecimal[c>>4], hexadecimal[c&15]})
	}
	return b.String()
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

var errEscape = errors.New("is not escaped")

// unescape is the reverse of escape.
func unescape(s string) (string, error) {
	plain, err := url.PathUnescape(s)
	if err != nil || escape(plain) != s {
		return "", errEscape
	}
	return plain, nil
}
