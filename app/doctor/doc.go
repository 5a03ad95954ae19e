// Package doctor looks at a database and tells what hurts Pawl there: its server, its
// settings, its tables, and what waits in them, each with what to do about it.
//
// [Checks] is the table of what is looked at. Each check is a query or a few, in a
// transaction that can write nothing, waits for no lock longer than a second and ends
// after five; how everything that waits stands is asked of an engine that is not
// started. So an examination ends also where the database is slow, or gone. What a
// role may not see is a finding of its own: nobody is told that all is well where
// nobody could look.
package doctor
