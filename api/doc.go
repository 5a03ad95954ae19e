// Package api implements the HTTP interface of Pawl: commands and queries over REST, the log of events over REST, server-sent events and
// WebSocket, and every error as a problem document (RFC 9457).
//
// It decodes and validates requests, calls the engine, and encodes the answers. It contains no SQL.
//
// Go clients should know that http.Transport repeats a request with an Idempotency-Key by itself if the connection is lost; see
// docs/protocol-commands.md.
//
// Each request has its own goroutine. The [API] tracks long-lived ones (WebSocket connections, event streams, long polls, waits for the end
// of a command) and ends all of them in [API.Stop].
package api
