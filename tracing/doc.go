// Package tracing is what Pawl says of its work to whoever traces it: which step begins, as
// part of which trace, and how it ends. It knows no library for that; package
// tracing/opentelemetry gives these steps to OpenTelemetry. Without a Tracer nothing is
// said, nothing is stored, and it costs a comparison.
//
// Where in a trace something is asked is a [Context], in the words of W3C Trace Context. It is in
// every command, in what a command in flight is asked, and in its events, so a trace goes on
// after a restart and on another node. It is no part of what an idempotency key stands
// for, and in no hash. docs/internals/access.md tells why it is so.
package tracing
