// Package ticket issues short-lived credentials that a caller passes on, for example to a browser.
// They allow reading, following or commanding one instance, business key or workflow, within the
// caller's own permissions. A ticket is a signed text; nothing is stored for it.
//
// The text is [Prefix] and a compact JSON Web Signature (RFC 7515) with HS256. [Keys] provides the
// keys; package keyset stores them in the database for all nodes.
package ticket
