// Package stream serves long-lived requests: WebSocket connections, event streams of the log and of commands, and long polls.
// [Server] tracks all of them and ends them in [Server.Stop].
//
// # A WebSocket connection
//
// A connection has a reader, a writer, a pump for each subscription to the log, and a task for each watched command:
//
//	reader ──control answers──┐
//	pump   ──batches──────────┼──▶ writer ──▶ socket
//	watch  ──statuses─────────┘
//
// The reader is the request's goroutine; only it starts and ends tasks. A pump waits for the log and passes batches to the writer.
// Only the writer writes: it encodes a batch as frames in one buffer and passes it to the socket in one call, so a subscriber
// costs little more than a copy of the bytes. The channel to the writer is unbuffered: if the socket is slow, the pump stops
// reading the log, so its lag is known exactly, and no other connection waits.
package stream
