// Package inbox receives messages from other systems: sources receive them, and a list holds those
// that could not be consumed.
//
// A message becomes a command (see transitions.Message), so idempotency keys make it take effect
// once and no table of messages is needed. Only dead messages have a row here: messages that were
// unreadable, matched nothing, were refused, or reuse the id of another message.
package inbox
