// Package signature signs and verifies messages according to Standard Webhooks 1.0.0
// (https://www.standardwebhooks.com), with the HMAC-SHA-256 of id, timestamp and body in a header.
//
// The webhook sink signs with it and the inbox verifies with it. It does not depend on other
// packages of Pawl, so any receiver in Go can use it.
//
// # Rotating a secret
//
// Add the new secret to the receiver, then to the sender, then remove the old one from both. A
// sender signs with each of its secrets and the receiver needs to know one of them, so no message
// is lost at any step.
//
// # Repetitions
//
// A signature authenticates the sender and the time of a message, not its first delivery: within
// the tolerance it can be replayed, and senders repeat unacknowledged messages. Receivers must
// remember ids to recognize repetitions.
package signature
