// Package audit owns the table audit: one append-only row for each transition, chained by hash to the instance's previous row.
//
// It supplies the commit pipeline with the columns and the text of its insert, and reads history. Package audit/verify verifies the chains.
package audit
