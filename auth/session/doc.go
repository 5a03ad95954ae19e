// Package session seals the credential of a signed-in user into the text of a cookie. Neither the
// browser nor anyone who sees the cookie can read the credential, and nobody without the keys can
// create or alter a cookie. Nothing is stored: every node with the ticket keys can open it. Each
// request is authorized with the credential again; the session adds no rights and does not outlive
// the credential.
//
// The text is the id of a key, a nonce and the AES-256-GCM of a [Session], in base64url. The key is
// derived from a ticket key by HKDF-SHA256 (RFC 5869) with a separate label, so that sessions and
// tickets cannot be confused.
package session
