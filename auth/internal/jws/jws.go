// Package jws says what the text of a signed token is.
package jws

import (
	"encoding/base64"
	"strings"
)

// Canonical reports whether a text is three parts in base64url, in the one way to write each (RFC 7515, section 7.1): what
// was altered must not mean the same.
func Canonical(token string) bool {
	if strings.Count(token, ".") != 2 {
		return false
	}
	for part := range strings.SplitSeq(token, ".") {
		if strings.ContainsAny(part, "\r\n") { // which the decoder passes over
			return false
		}
		if _, err := base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return false
		}
	}
	return true
}
