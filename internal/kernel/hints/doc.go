// Package hints exchanges hints between the nodes of one database, so that what
// happens on one is known on the others before their next poll.
//
// A hint says that a log has grown, that commands have changed, that there is
// work for somebody else, or that a sink can be taken or has been changed. It is
// never needed: it can be lost, come late or twice, and whoever gets it reads the
// tables. So whoever uses it polls as well.
//
// Hints are sent by NOTIFY, which takes a lock of the whole database at commit.
// So none rides in a transaction that does anything else, and those of a short
// time are sent together, in one statement. They are heard over one connection of
// their own.
package hints
