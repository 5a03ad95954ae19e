// Package sqlstate is the table of PostgreSQL's errors: the meaning of each SQLSTATE for Pawl, and where a retry helps, with which key.
// The commit pipeline follows the table, docs/sqlstates.md is generated from it, and tests run each row.
package sqlstate
