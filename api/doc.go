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
package api
