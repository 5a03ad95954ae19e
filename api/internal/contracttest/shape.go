package contracttest

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// shapeOfAnswer is what of an answer the document says something about, and where: most routes refer to the same answers. Of its
// headers it says only that they are texts.
func (at *place) shapeOfAnswer(x *Exchange) []byte {
	said := at.route.Method + " " + at.route.Path
	if r := at.route.Operation.Responses.Status(x.Status); r != nil && r.Ref != "" {
		said = r.Ref
	}
	return appendShape(fmt.Appendf(nil, "%s %d %s\n", said, x.Status, mediaOf(x.Header)), x.Body)
}

// shapeOfRequest is what of a request the document says something about: the parameters that it has, and the body.
func (at *place) shapeOfRequest(x *Exchange) []byte {
	h := x.Request.Header
	b := fmt.Appendf(nil, "%s %s %t %q\n", at.route.Method, at.route.Path, h.Get("Authorization") != "", h["Content-Type"])
	b = append(appendShape(b, []byte(at.path)), '?')
	b = append(appendShape(b, []byte(x.Request.URL.RawQuery)), '\n')
	for _, p := range at.route.Operation.Parameters {
		if p.Value.In == openapi3.ParameterInHeader {
			b = fmt.Appendf(b, "%s ", p.Value.Name)
			b = append(appendShape(b, fmt.Appendf(nil, "%q", h[http.CanonicalHeaderKey(p.Value.Name)])), '\n')
		}
	}
	return appendShape(b, x.Sent)
}

// appendShape appends a text in which each UUID, time and hash is one and the same: what a document says of a text, it says of every
// text of this shape. Everything else stays, numbers too.
func appendShape(b, text []byte) []byte {
	for i := 0; i < len(text); {
		switch rest := text[i:]; {
		case i > 0 && wordy(text[i-1]): // in the middle of something else
			b, i = append(b, text[i]), i+1
		case beginsWithUUID(rest):
			b, i = append(b, "\x00uuid"...), i+lenUUID
		case lenTime(rest) > 0:
			b, i = append(b, "\x00time"...), i+lenTime(rest)
		case lenHash(rest) > 0:
			b, i = append(b, "\x00hash"...), i+lenHash(rest)
		default:
			b, i = append(b, text[i]), i+1
		}
	}
	return b
}

const lenUUID = len("00000000-0000-0000-0000-000000000000")

func beginsWithUUID(text []byte) bool {
	if len(text) < lenUUID || text[8] != '-' || len(text) > lenUUID && wordy(text[lenUUID]) {
		return false
	}
	for i, c := range text[:lenUUID] {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash && c != '-' || !dash && !hexadecimal(c) {
			return false
		}
	}
	return true
}

// lenTime is how long the time is (RFC 3339, UTC) that a text begins with, 0 for none.
func lenTime(text []byte) int {
	const seconds = len("2030-01-31T12:00:00")
	if len(text) <= seconds || text[4] != '-' || text[10] != 'T' {
		return 0
	}
	end := bytes.IndexByte(text[:min(len(text), seconds+len(".123456789Z"))], 'Z') + 1
	if end == 0 || end < len(text) && wordy(text[end]) {
		return 0
	}
	if _, err := time.Parse(time.RFC3339Nano, string(text[:end])); err != nil {
		return 0
	}
	return end
}

// lenHash is how long the SHA-256 is in hexadecimal digits that a text begins with, 0 for none.
func lenHash(text []byte) int {
	const length = 64
	if len(text) < length || len(text) > length && wordy(text[length]) {
		return 0
	}
	for _, c := range text[:length] {
		if !hexadecimal(c) {
			return 0
		}
	}
	return length
}

func hexadecimal(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }

func wordy(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '_' || c == '.' || c == '+'
}
