// Package audit owns the table audit: one row for every transition, append-only,
// each chained by hash to the instance's previous one.
//
// It supplies the commit pipeline with the columns and the text of its insert, and
// reads history. It begins and ends no transaction. Chains are verified in
// audit/verify, with the instances and the events that they are about.
package audit
