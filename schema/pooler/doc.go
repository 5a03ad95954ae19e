// Package pooler knows when a pooler such as PgBouncer, in transaction mode, is
// between a program and its database. There a session of the database belongs to
// whoever has a transaction open: named prepared statements, SET, LISTEN and
// session locks do not stay with a connection, and what one leaves behind meets
// another.
//
// The program says so itself, by the way in which its driver runs queries, as the
// driver's documentation has it: default_query_exec_mode=exec in the connection
// string. Who forgets it is told, instead of failing now and then.
package pooler
