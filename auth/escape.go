package auth

import (
	"errors"
	"net/url"
	"strings"
)

const hexadecimal = "0123456789ABCDEF"

// escape percent-encodes all but unreserved characters (RFC 3986, section 2.3).
func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("0123456789-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', hexadecimal[c>>4], hexadecimal[c&15]})
	}
	return b.String()
}

var errEscape = errors.New("is not escaped")

// unescape reverses escape.
func unescape(s string) (string, error) {
	plain, err := url.PathUnescape(s)
	if err != nil || escape(plain) != s {
		return "", errEscape
	}
	return plain, nil
}
