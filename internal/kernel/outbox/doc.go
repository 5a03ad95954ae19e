// Package outbox owns the tables outbox and log: the events of every tenant in commit order.
//
// Positions are gapless per tenant and commit-ordered, because the row lock on the log's head is the last one of a transaction. So a
// reader's cursor is one integer, and "position > cursor" never skips a late commit. The package supplies the commit pipeline with
// statements, and reads the log.
package outbox
