package api

import (
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxWait is the longest that a caller may ask to be kept waiting.
const maxWait = 60 * time.Second

// preferredWait returns the seconds of "Prefer: wait=N" (RFC 7240), at most
// maxWait. As that document has it, a preference that makes no sense is passed
// over, and the first of several counts.
func preferredWait(r *http.Request) time.Duration {
	for name, value := range preferences(r) {
		if !strings.EqualFold(name, "wait") {
			continue
		}
		if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
			return min(time.Duration(seconds)*time.Second, maxWait)
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
