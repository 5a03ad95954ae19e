// Package apikey creates and verifies API keys: credentials of machines that are stored in this database instead of an identity provider.
//
// A key's text is pawl_<id>_<secret><checksum>. The id appears in the table, in lists and in audit rows. The secret is random, shown once,
// and stored only as its SHA-256. The checksum detects typing mistakes without a query and lets source code scanners recognize keys.
//
// [Table] stores the keys. A [Verifier] caches known keys, so that requests cost no query. Each node polls twice a second for changes, by
// an index on a revision that every rotation and revocation increments in commit order. A revoked key is therefore rejected by every node
// within a second, and its open streams end. Unknown keys are looked up in batches, so that invented ids cause a bounded number of queries.
package apikey
