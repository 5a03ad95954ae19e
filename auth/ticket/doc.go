// Package ticket is short-lived credentials that a caller passes on, such as to a browser: they let somebody read,
// follow, or send commands of one instance, business key or workflow, and no more than the caller himself is allowed to. A ticket
// is a text that says all of this, signed; nothing is stored for one.
//
// The text is [Prefix] and a JSON Web Signature (RFC 7515) in its compact form, with HS256. The keys are given by
// [Keys]; package ring has them in the database, where every node finds them.
package ticket
