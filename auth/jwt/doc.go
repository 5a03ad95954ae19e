// Package jwt takes the tokens of an identity provider: JSON Web Tokens (RFC 7519) that are signed
// (RFC 7515), in the profile that RFC 8725 recommends.
//
// What is taken has to be configured: who issues tokens, for whom, how they are signed and with which
// keys. A token must end. Its key is looked for by its id among those that are configured; nothing in
// a token says where a key is to be found. A secret and public keys are never looked for in the same
// place, so no public key is taken for a secret.
//
// Keys that are fetched are fetched again before anybody misses them, and an id that is not known
// causes one fetch in [ForcedEvery] at most, however many tokens name such ids. While they cannot be
// fetched those that are there are used, for as long as [Config.Survive] says.
package jwt
