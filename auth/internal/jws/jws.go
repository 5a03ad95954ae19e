// Package jws validates the encoding of signed tokens.
package jws

import (
	"encoding/base64"
	"strings"
)

// Canonical reports whether a text consists of three base64url parts in canonical encoding (RFC 7515, section 7.1), so that an altered
// token never has the same meaning.
func Canonical(token string) bool {
	if strings.Count(token, ".") != 2 {
		return false
	}
	for part := range strings.SplitSeq(token, ".") {
		if strings.ContainsAny(part, "\r\n") { // ignored by the decoder
			return false
		}
		if _, err := base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return false
		}
	}
	return true
}
