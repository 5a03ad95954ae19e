// Package ticket is short-lived rights that who has a right passes on, such as to a browser: to read, to
// follow, or to send commands of one instance, business key or workflow, as somebody. A ticket is a text that says
// all of this, signed; nothing is stored for one.
//
// The text is [Prefix] and a JSON Web Signature (RFC 7515) in its compact form, with HS256. The keys are given by
// [Keys]; package ring has them in the database, where every node finds them.
package ticket
