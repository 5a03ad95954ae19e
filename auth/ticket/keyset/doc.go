// Package keyset stores the keys that sign tickets in the table ticket_key, and caches them on each
// node.
//
// A key signs for a day and verifies for one hour more, the maximum lifetime of a ticket. The first
// node that needs a signing key creates one; creating and removing keys locks the table, so that
// concurrent nodes create one key.
//
// A node does not read the table until it handles a ticket. Then it polls the table every few
// seconds. An unknown key id causes an immediate read, at most once per second.
package keyset
