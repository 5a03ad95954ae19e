// Package client calls the nodes of Pawl over HTTP and WebSocket.
//
// A [Client] is safe for concurrent use. It has several addresses, stays with one that responds, and switches if it fails. Temporary
// failures are retried with backoff and full jitter, not before Retry-After. All attempts of a command share a key, so that the command is
// executed once and every attempt gets the same result.
//
// Every error is a *[workflow.Error]. A refusal has the code of its problem document, and [workflow.Code.Info] reports whether it is final
// for the key or whether a retry may succeed. A call without a response is [workflow.TimedOut]: its outcome is unknown, and a call with the
// same key finds it. Errors of the context are wrapped.
//
// Importing this package links neither the engine nor a database driver or a server.
package client
