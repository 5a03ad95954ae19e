package api

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/api/internal/budget"
)

// pieceSize is how many bytes of an answer have a time of their own.
const pieceSize = 64 << 10

// answerWriter is the writer of one answer. Each piece of it has to be taken within a
// time, so a caller that reads slowly gets a long answer, and one that does not read
// keeps nothing. It also sees what the log says of the answer.
type answerWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	timeout  time.Duration // of a piece
	paced    atomic.Bool   // a stream sets the time of its writes itself
	hijacked bool
	status   int
	bytes    int64
	caller   Caller // zero where nobody was asked for

	ctx    context.Context // of the request
	holder *budget.Holder  // of what the request holds; nil for a route of the program
}

// bound gives what is written next its time. Not every writer is a connection's.
func (w *answerWriter) bound() {
	if !w.paced.Load() {
		_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout))
	}
}

func (w *answerWriter) WriteHeader(status int) {
	if status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *answerWriter) Write(b []byte) (written int, err error) {
	for {
		piece := b[written:min(written+pieceSize, len(b))]
		w.bound()
		n, err := w.ResponseWriter.Write(piece)
		written += n
		w.bytes += int64(n)
		if err != nil || written == len(b) {
			return written, err
		}
	}
}

// FlushError is for http.ResponseController.
func (w *answerWriter) FlushError() error {
	w.bound()
	return w.control.Flush()
}

// Flush is for who asks for an http.Flusher.
func (w *answerWriter) Flush() { _ = w.FlushError() }

// SetWriteDeadline is for streams, which know better; the zero time gives it back.
func (w *answerWriter) SetWriteDeadline(t time.Time) error {
	w.paced.Store(!t.IsZero())
	return w.control.SetWriteDeadline(t)
}

// Hijack hands the connection over, to be a WebSocket's.
func (w *answerWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	socket, buffered, err := w.control.Hijack()
	if err == nil {
		w.hijacked, w.status = true, http.StatusSwitchingProtocols
	}
	return socket, buffered, err
}

// Unwrap lets http.ResponseController reach what the server gave.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// finish gives the end of the answer its time, which the server writes when the handler
// has returned; that of a stream may be over.
func (w *answerWriter) finish() {
	if !w.hijacked {
		_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout))
	}
}

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
