// Package pooler detects a pooler in transaction mode, such as PgBouncer, between a program and its
// database. With such a pooler, each transaction may use another session: named prepared
// statements, SET, LISTEN and session locks do not stay with a connection and affect others.
//
// The program must choose a suitable mode of its driver: default_query_exec_mode=exec in the connection string. This package reports a
// missing setting at the start, instead of intermittent errors later.
package pooler
