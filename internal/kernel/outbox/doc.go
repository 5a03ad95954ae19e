// Package outbox owns the tables outbox and log: the events of every tenant in
// the order in which their transitions committed.
//
// A position is one number per tenant, gapless and commit-ordered, because the
// row lock on the log's head is the last that a transaction takes. So a
// reader's cursor is one integer, and "position > cursor" never skips a late
// commit. The package supplies the commit pipeline with the text of its
// statements and reads the log. It begins and ends no transaction.
package outbox
