package webhook

import (
	"net/http"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
)

// maxRetryAfter bounds Retry-After.
const maxRetryAfter = 24 * time.Hour

// meaning maps a status to a kind; "" means delivered. The package comment documents the mapping.
func meaning(status int) sink.Kind {
	switch status {
	case http.StatusGone:
		return sink.Gone
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusProxyAuthRequired, http.StatusUnsupportedMediaType,
		http.StatusMisdirectedRequest, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return sink.Unavailable
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusLocked, http.StatusTooEarly:
		return sink.Temporary
	}
	switch status / 100 {
	case 2:
		return ""
	case 3:
		return sink.Unavailable
	case 4:
		return sink.Permanent
	}
	return sink.Temporary
}

// retryAfter parses Retry-After (RFC 9110, section 10.2.3), seconds or a date. It returns 0 if
// absent or in the past.
func retryAfter(header string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(header, 10, 64); err == nil {
		wait = time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
