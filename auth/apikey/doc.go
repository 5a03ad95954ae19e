// Package apikey makes API keys and takes them: credentials of machines, which this database knows and no
// identity provider.
//
// A key's text is pawl_<id>_<secret><checksum>. The id is in the table, in lists and in audit rows; the
// secret is random, is shown once, and is nowhere: the table has its SHA-256. The checksum tells a typing
// mistake without a look at the table, and lets scanners of source code be sure of what they have found.
//
// [Table] keeps the keys. A [Verifier] remembers those that it has seen, so that a request costs no
// query. Each node looks twice a second for what has changed, by an index on a number that every
// rotation and revocation counts up in the order of their commits; so a key that was revoked is refused by
// every node within a second, and what is open with it ends. Keys that are not known yet are looked up
// many at a time, so that whoever makes ids up costs the database a bounded number of looks.
package apikey
