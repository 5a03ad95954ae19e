// Package login has people sign in at an identity provider, with a browser: the authorization code flow of OAuth 2.0 (RFC 6749,
// section 4.1) with PKCE (RFC 7636), at the addresses that OpenID Connect Discovery 1.0 tells. What comes of it is an access
// token, which is taken or refused like any other: nothing is believed here but where to ask for it.
package login
