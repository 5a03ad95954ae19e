// Package signature signs and verifies messages as Standard Webhooks 1.0.0
// (https://www.standardwebhooks.com) says: three headers, of which one is the
// HMAC-SHA-256 of the id, the timestamp and the body.
//
// The webhook sink signs with it and the inbox verifies with it, and it serves
// any other receiver in Go just as well: it needs nothing else of Pawl.
//
// # Replacing a secret
//
// Give the receiver the new secret beside the old one, then the sender, then
// take the old one from the receiver and from the sender. A sender that knows
// several signs with each, and one that the receiver knows is enough, so no
// message is lost at any step, in whichever order they are done.
//
// # Repetitions
//
// A signature says who sent a message and when, not that it comes for the first
// time: within the tolerance it can be sent again by anybody who saw it, and a
// sender repeats what was not acknowledged. The id is what tells a repetition,
// and the receiver has to remember it.
package signature
