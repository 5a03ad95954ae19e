// Package client asks nodes of Pawl over HTTP and WebSocket.
//
// A [Client] is for many goroutines. It knows several addresses, keeps to the one that answers, and goes to another where one does not.
// What may pass, it tries again, with backoff and full jitter, and not before the time that Retry-After says. A command has one key for
// all of these attempts, so that it is done once and every attempt gets the same answer.
//
// Every error is a *[workflow.Error]: a refusal has the code of its problem document, and [workflow.Code.Info] says whether that is final
// for the key, or whether the same request may succeed later. A call without an answer is [workflow.TimedOut]: the outcome may be
// durable, and the same key will find it. Where the context has ended, its error is wrapped.
//
// A program that imports this package links no engine, no database driver and no server.
package client
