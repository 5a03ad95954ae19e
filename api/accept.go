package api

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/workflow"
)

// accepted returns which of the route's answers the caller prefers. Error:
// NotAcceptable.
func (r *request) accepted() (string, error) {
	offers := r.route.media()
	if media := accepted(r.Request, offers...); media != "" {
		return media, nil
	}
	return "", workflow.Errorf(workflow.NotAcceptable, "the answer is %s", orList(offers))
}

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
