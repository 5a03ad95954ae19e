// Package session is what a browser keeps of who has signed in: the credential, sealed, as the text of a cookie. Neither the
// browser nor whoever sees the cookie learns the credential, nobody can make or alter one, and nothing is stored for it: every
// node that has the keys of tickets opens it. What the caller may do is asked of the credential, again at each request; a
// session adds nothing to it, and ends no later.
//
// The text is the id of a key, a nonce and the AES-256-GCM of what is in [Session], in base64url. The key is derived from a
// ticket key by HKDF-SHA256 (RFC 5869) with a label of its own, so that nothing which is made with one of the two can be
// taken for the other.
package session
