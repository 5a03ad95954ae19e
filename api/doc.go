// Package api is the HTTP interface of Pawl: commands and queries over REST,
// the log of events over REST, server-sent events and WebSocket, and every
// error as a problem document (RFC 9457).
//
// It decodes, checks and answers. What a command means is decided behind
// [Engine], and this package knows no SQL.
//
// A client in Go should know that http.Transport repeats a request with an
// Idempotency-Key by itself when the connection is lost; see docs/protocol.md.
//
// A request is handled in its own goroutine. What lasts longer than a moment,
// a WebSocket connection, an event stream, a long poll or a wait for the end of
// a command in flight, is known to the [API], which ends all of them in
// [API.Stop].
//
// # A WebSocket connection
//
// It has one reader, one writer, and one task for each subscription to the log,
// a pump, and for each command that is watched:
//
//	reader ──control answers──┐
//	pump   ──batches──────────┼──▶ writer ──▶ socket
//	watch  ──statuses─────────┘
//
// The reader is the request's goroutine; it alone starts and ends tasks. A pump
// waits for the log and hands what it got to the writer. The writer alone
// writes: it turns a batch into frames in one buffer and hands the buffer to
// the socket in one call, so that a reader of the log costs little more than
// a copy of the bytes. The channel to the writer has no buffer: when the socket
// is slow, the pump stops reading the log, and how far it falls behind is known
// exactly. Nobody else waits for it.
package api
