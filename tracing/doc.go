// Package tracing defines the traced steps of Pawl, independent of a tracing library; package
// tracing/opentelemetry maps them to OpenTelemetry. Without a Tracer nothing is traced or stored,
// at the cost of a comparison.
//
// A [Context] is a position in a trace, in the format of W3C Trace Context. Commands, commands in
// flight and their events contain it, so traces continue after a restart and on other nodes. It is
// not part of the request that an idempotency key identifies, nor of any hash.
// docs/internals/access.md explains why.
package tracing
