// Package login signs users in at an identity provider with a browser: the authorization code flow
// of OAuth 2.0 (RFC 6749, section 4.1) with PKCE (RFC 7636) and the endpoints from OpenID Connect
// Discovery 1.0. The resulting access token is verified like any other; this package trusts nothing
// except the endpoints.
package login
