// Package jwt verifies the tokens of an identity provider: signed JSON Web Tokens (RFC 7519, RFC 7515) in the profile recommended by RFC
// 8725.
//
// Issuer, audience, algorithms and keys must be configured. Tokens must expire. A token's key is found by its id among the configured keys;
// a token cannot name the location of a key. Secrets and public keys are never in the same set, so a public key is never used as a secret.
//
// Keys are fetched periodically. An unknown key id causes at most one fetch in [ForcedEvery], regardless of the number of tokens with such
// ids. While keys cannot be fetched, the known ones are used for [Config.Survive].
package jwt
