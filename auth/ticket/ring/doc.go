// Package ring is the keys that sign tickets, in the table ticket_key, as a node knows them.
//
// A key signs for a day and verifies for an hour longer, which is how long the last ticket lasts that it has signed. The
// first node that has to sign where no key may makes one; who makes or removes one locks the table, so that several nodes make one.
//
// A node reads nothing until it has to do with a ticket. From then on it reads the table every few seconds, and so notices
// keys that others make and remove. An id that it does not know makes it read at once, but not more than once in a
// second, however many come.
package ring
