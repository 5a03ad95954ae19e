package api

import "net/http"

// AnswerHeaders returns the headers that any answer may have, in addition to those of its route.
func AnswerHeaders() []Header {
	return []Header{
		{"Content-Type", "of the body"},
		{"Content-Length", "of the body, but of a stream's"},
		{"Date", "when it was answered"},
		{"Cache-Control", "`private, no-cache`: for this caller, and to be asked for again, with `If-None-Match` if there is an `ETag`; " +
			"`no-cache` without a caller; `no-store` of a stream"},
		{"Vary", "which headers of the request the answer depends on"},
		{headerRequestID, "what the request is called in the log: what the caller has called it, else a UUID"},
		{headerRetryAfter, "in how many seconds the same request may succeed; of problems that may pass"},
		{headerChallenge, "how a caller would be known, and what is wrong with his credential; of 401"},
		{"Allow", "the methods of an address, where another one was used"},
		{"X-Content-Type-Options", "`nosniff`: no browser takes it for something else"},
		{headerPolicy, "what a browser may load for it, and who may frame it: nothing and nobody; of an SVG, its own style"},
		{"Strict-Transport-Security", "a year, over TLS; not for `localhost` or an address"},
		{"Referrer-Policy", "`no-referrer`: addresses of Pawl are told to nobody"},
		{headerAllowOrigin, "the origin of the page that asks, if it is listed"},
		{headerExposeHeaders, "which headers such a page may read: all of these"},
		{"X-Accel-Buffering", "`no`, of a stream: proxies are not to hold it back"},
	}
}

const headerPolicy = "Content-Security-Policy"

// protect says to browsers what an answer is not. Routes of the program do that themselves.
func protect(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set(headerPolicy, "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
}
