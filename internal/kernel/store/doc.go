// Package store owns the tables instance and command, and what says how they are
// treated: paused and horizon. Here are their columns, the one
// writer of each kind of change, the one reader of a row, and the text of every
// statement that touches them. Who needs one of them in a statement of his own, or
// beside another table, gets a piece of SQL from here; nobody else names them
// (internal/testkit/arch tests that).
//
//	instance.go, command.go   the columns, and the commit pipeline's statements
//	reader.go, record.go      an instance, a command, by key
//	view.go, stuck.go, keys.go, lists.go, kinds.go, counts.go   what operators ask
//	flights.go                leases on commands in flight: look, claim, keep, cancel
//	retention.go, horizon.go  what ends after its time
//	paused.go                 workflows that begin nothing new
//	relations.go              pieces of SQL for the statements of others
//
// The package takes no decision, and begins and ends no transaction but to read a
// list. The order of locks is told in engine/internal/commit/doc.go.
package store
