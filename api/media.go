package api

import (
	"mime"
	"net/http"
	"strings"

	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/workflow"
)

// Media types.
const (
	mediaJSON        = "application/json"
	mediaNDJSON      = "application/x-ndjson"
	mediaForm        = "application/x-www-form-urlencoded"
	mediaProblem     = "application/problem+json"
	mediaEventStream = stream.MediaType
	mediaBytes       = "application/octet-stream"
)

// untyped reports whether a client chose no content type: it sends no body, or
// is "curl -d", which calls everything a form. That is safe where a key is
// asked for: it is a header, which no page of another origin can send.
func untyped(r *http.Request) bool {
	switch values := r.Header.Values("Content-Type"); len(values) {
	case 0:
		return r.ContentLength == 0
	case 1:
		return values[0] == mediaForm
	default:
		return false
	}
}

// contentType returns which of the media types the body is of. Anything else is
// refused, a missing type too: so no web form can post to a server without
// authentication.
func contentType(r *http.Request, allowed ...string) (string, error) {
	value, err := single(r, "Content-Type")
	if err != nil {
		return "", err
	}
	media, params, err := mime.ParseMediaType(value)
	if err == nil {
		for _, a := range allowed {
			if charset := params["charset"]; media == a && (charset == "" || strings.EqualFold(charset, "utf-8")) {
				return a, nil
			}
		}
	}
	return "", workflow.Errorf(workflow.UnsupportedMedia, "the Content-Type is not %s", strings.Join(allowed, " or "))
}
