package api

import "net/http"

// AnswerHeaders returns the headers that any answer may have, in addition to those of its route.
func AnswerHeaders() []Header {
	return []Header{
		{"Content-Type", "of the body"},
		{"Content-Length", "of the body, except of a stream"},
		{"Date", "the time of the answer"},
		{"Cache-Control", "`private, no-cache`: for this caller, and to be revalidated, with `If-None-Match` if there is an `ETag`; " +
			"`no-cache` without a caller; `no-store` of a stream"},
		{"Vary", "the headers of the request that the answer depends on"},
		{headerRequestID, "the id of the request in the log: the caller's, otherwise a UUID"},
		{headerRetryAfter, "seconds until the same request may succeed; with temporary problems"},
		{headerChallenge, "accepted authentication, and the error of the credential; of 401"},
		{"Allow", "the methods of an address; of 405"},
		{"X-Content-Type-Options", "`nosniff`"},
		{headerPolicy, "resources and frames are forbidden; an SVG may use its own style"},
		{"Strict-Transport-Security", "a year, over TLS; not for `localhost` or an address"},
		{"Referrer-Policy", "`no-referrer`"},
		{headerAllowOrigin, "the origin of the page, if it is listed"},
		{headerExposeHeaders, "the headers that such a page may read: all of these"},
		{"X-Accel-Buffering", "`no`, of a stream: proxies must not buffer it"},
	}
}

const headerPolicy = "Content-Security-Policy"

// protect says to browsers what an answer is not. Routes of the program do that themselves.
func protect(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set(headerPolicy, "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
}
