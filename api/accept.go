package api

import (
	"iter"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/workflow"
)

// accepted returns the offer that the Accept header prefers (RFC 9110, section
// 12.5.1), the earlier one of equals, and "" when it takes none of them. Without
// a header everything is taken.
func accepted(r *http.Request, offers ...string) string {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return offers[0]
	}
	best, bestQuality := "", 0.0
	for _, offer := range offers {
		if q := quality(header, offer); q > bestQuality {
			best, bestQuality = offer, q
		}
	}
	return best
}

// quality is the weight that an Accept header gives to a media type: that of
// the most specific range that covers it.
func quality(header, media string) float64 {
	kind, _, _ := strings.Cut(media, "/")
	weight, specific := 0.0, 0
	for part := range strings.SplitSeq(header, ",") {
		span, params, _ := strings.Cut(part, ";")
		level := 0
		switch span = strings.ToLower(strings.TrimSpace(span)); span {
		case media:
			level = 3
		case kind + "/*":
			level = 2
		case "*/*":
			level = 1
		}
		if level > specific {
			weight, specific = weightOf(params), level
		}
	}
	return weight
}

func weightOf(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(q >= 0 && q <= 1) {
			return 0
		}
		return q
	}
	return 1
}

// acceptsGzip reports whether Accept-Encoding takes gzip (RFC 9110, section 12.5.3), and does not prefer the bytes as they are.
func acceptsGzip(r *http.Request) bool {
	weights := map[string]float64{}
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, params, _ := strings.Cut(part, ";")
		weights[strings.ToLower(strings.TrimSpace(coding))] = weightOf(params)
	}
	weight, named := weights["gzip"]
	if !named {
		weight = weights["*"]
	}
	return weight > 0 && weight >= weights["identity"]
}

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

// preferredWait returns the seconds of "Prefer: wait=N" (RFC 7240), at most longest.
// As that document has it, a preference that makes no sense is passed
// over, and the first of several counts.
func preferredWait(r *http.Request, longest time.Duration) time.Duration {
	for name, value := range preferences(r) {
		if !strings.EqualFold(name, "wait") {
			continue
		}
		if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
			return min(time.Duration(seconds)*time.Second, longest)
		}
	}
	return 0
}

// prefersAsync reports whether the caller prefers an answer before the end.
func prefersAsync(r *http.Request) bool {
	for name := range preferences(r) {
		if strings.EqualFold(name, "respond-async") {
			return true
		}
	}
	return false
}

// preferences yields the names and the values of the header Prefer, without
// their parameters.
func preferences(r *http.Request) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, value := range r.Header.Values(headerPrefer) {
			for preference := range strings.SplitSeq(value, ",") {
				preference, _, _ = strings.Cut(preference, ";")
				name, v, _ := strings.Cut(preference, "=")
				if !yield(strings.TrimSpace(name), strings.Trim(strings.TrimSpace(v), `"`)) {
					return
				}
			}
		}
	}
}
