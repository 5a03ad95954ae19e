// Package stream is what lasts longer than a moment: WebSocket connections and event
// streams of the log and of commands, and requests that wait for something new. [Server]
// knows all of them, and ends them in [Server.Stop].
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
package stream
