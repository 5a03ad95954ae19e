// Package doctor examines a database for problems of Pawl: its server, its settings, its tables, and the work that waits in them, each with
// a remedy.
//
// [Checks] is the table of checks. Each check is a query or a few, in a read-only transaction that waits for a lock for at most a second
// and ends after five; the state of waiting work comes from an engine that is not started. So an examination ends even if the database is
// slow or gone. Missing rights of the role are findings of their own, so that a check that could not look does not report success.
package doctor
